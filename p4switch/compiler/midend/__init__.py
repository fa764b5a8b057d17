"""Middle end, which lowers the typed tree to flat, inlined and specialised code (`p4switch.ir`)."""
