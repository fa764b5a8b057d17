"""BfRuntime, the control plane of TNA and T2NA programs: `bf-rt.json`, which says what tables there are."""
