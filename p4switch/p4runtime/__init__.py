"""P4Runtime: the messages, and the device that they control."""
