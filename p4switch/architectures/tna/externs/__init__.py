"""The externs of TNA and T2NA, each in its file."""
