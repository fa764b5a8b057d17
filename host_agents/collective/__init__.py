"""In-network collectives: multicast writes and read reductions over groups of hosts."""
