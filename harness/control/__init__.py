"""The control plane: what each P4 program wants written, and how it is written into switches."""
