// Headers, types and constants that all programs share. Layouts: docs/wire-formats.md.
#ifndef P4CC_HEADERS_P4
#define P4CC_HEADERS_P4

#include "packets/roce.p4"

typedef bit<9>  port_t;

const bit<32> MAX_PORTS = 512;

const bit<16> ETHERTYPE_IPV4 = 0x0800;
const bit<8>  IP_PROTOCOL_UDP = 17;
const bit<16> UDP_PORT_ROCEV2 = 4791;

const bit<16> ETHERNET_BYTES = 14;

#endif
