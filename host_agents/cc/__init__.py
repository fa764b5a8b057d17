"""Congestion-control protocols, one file each. Importing a file registers its protocol."""
