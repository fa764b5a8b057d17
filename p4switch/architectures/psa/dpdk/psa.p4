// PSA with the methods that p4c's DPDK back end adds; they take the length of the packet.

#define P4CC_PSA_DPDK
#include "../psa.p4"
