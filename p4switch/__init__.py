"""The built-in P4 toolchain: compiler, engine, fabric, P4Runtime."""
