"""The architecture v1model, as BMv2's simple_switch has it."""
