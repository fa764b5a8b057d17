"""Control plane: the entries that each P4 program needs, and how they are written into switches."""
