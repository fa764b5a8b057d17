"""BfRuntime, the control-plane API of TNA and T2NA programs, and `bf-rt.json`, which describes their tables."""
