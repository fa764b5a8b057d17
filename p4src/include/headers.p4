// Headers, types and constants that all programs share. Layouts: docs/wire-formats.md.
// @noWarn: no program uses all constants.
#ifndef P4CC_HEADERS_P4
#define P4CC_HEADERS_P4

#include "packets/roce.p4"

typedef bit<9>  port_t;

@noWarn("unused") const bit<32> MAX_PORTS = 512;

@noWarn("unused") const bit<16> ETHERTYPE_IPV4 = 0x0800;
@noWarn("unused") const bit<8>  IP_PROTOCOL_UDP = 17;
@noWarn("unused") const bit<16> UDP_PORT_ROCEV2 = 4791;

@noWarn("unused") const bit<16> ETHERNET_BYTES = 14;

#endif
