"""An experiment: plans of runs, workloads, worlds, measurements, and the columns of tables."""
