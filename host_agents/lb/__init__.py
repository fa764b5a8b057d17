"""Load balancers, one file each. Importing a file registers its scheme."""
