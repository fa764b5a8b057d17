// PSA with the widths of BMv2's psa_switch.

#include "../psa.p4"
