#include <core.p4>

const bit<8> eight = 8;
typedef bit<0 - 1> negative_t;             // error: the width of bit<> must be 0 to 2048, not -1
typedef int<0> nothing_t;                  // error: the width of int<> must be 1 to 2048, not 0
typedef bit<4096> wide_t;                  // error: the width of bit<> must be 0 to 2048, not 4096
typedef bit<eight> byte_t;

header h_t {
    bit<8> a;
    h2_t b;                                // error: type 'h2_t' is not declared
    error c;                               // error: field 'c' of type error cannot be in a header
    varbit<8> v;
}

struct pair<T> { T a; T b; }
struct in_header { bool flag; byte_t value; }
header nested_t { in_header s; h_t h; }    // error: field 'h' of type h_t cannot be in a header
header_union u_t { h_t h; in_header s; }   // error: field 's' of type in_header cannot be in a header union
struct bad_t { void v; packet_in p; int i; }  // error: field 'v' of type void cannot be in a struct
                                           // error -1: field 'p' of type packet_in cannot be in a struct
                                           // error -2: field 'i' of type int cannot be in a struct
typedef pair<bit<8>, bit<8>> two_t;        // error: type 'pair' takes 1 type argument, not 2
typedef byte_t<bit<8>> applied_t;          // error: type 'byte_t' is not generic
typedef pair<pair<bit<8>>> self_t;         // error: 'pair' cannot be a type argument of itself
typedef h_t[0] none_t;                     // error: the size of a stack must be 1 to 65536, not 0
typedef packet_in[2] packets_t;            // error: packet_in cannot be the element of a stack or array
type h_t new_t;                            // error: 'type' can be based on bit<>, int<>, bool and the like, not on h_t
enum bool flags_t { a = true }             // error: an enum can be represented by bit<> or int<>, not by bool
enum bit<4> small_t { a = 15, b = 16 }     // error: 16 does not fit in bit<4>, which represents 'small_t'
enum bit<4> open_t { a = 1, b = a + 1 }

control c(inout bit<8> x) {
    bit<x> v;                              // error: the width of bit<> must be an integer known at compile time
    pair<bit<8>> p = { 1, 2 };
    pair q = p;                            // error: type 'pair' takes 1 type argument, not 0
    string s;                              // error: variable 's' cannot have type string
    int i;                                 // error: variable 'i' cannot have type int
    packet_out o;                          // error: variable 'o' cannot have type packet_out
    apply { }
}
const tuple<bit<8>, bit<8>> short = { };   // error: tuple<bit<8>, bit<8>> needs 2 values, not 0
const bit<8> second = short[1];
