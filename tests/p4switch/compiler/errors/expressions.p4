#include <core.p4>

header h_t { bit<8> a; }
struct s_t { bit<8> a; bit<16> b; }
enum e_t { x, y }
enum bit<8> ser_t { one = 1, two = 2 }
type bit<8> port_t;

control c(inout bit<8> b8, inout bit<16> b16, inout int<8> i8, in bool flag, inout h_t h, inout port_t port) {
    h_t[2] hs;
    s_t s;
    tuple<bit<8>, bool> t;
    apply {
        b8 = b16;                          // error: expected bit<8>, not bit<16>
        b8 = i8;                           // error: expected bit<8>, not int<8>
        b8 = flag;                         // error: expected bit<8>, not bool
        b8 = b8 + b16;                     // error: '+' needs operands of one type, not bit<8> and bit<16>
        b8 = b8 & i8;                      // error: '&' needs operands of one type, not bit<8> and int<8>
        b8 = flag ? b8 : b16;              // error: '?:' needs alternatives of one type, not bit<8> and bit<16>
        b8 = flag ? 1 : 2;                 // error: one alternative of '?:' needs a width (as in 8w1)
        b8 = b8 ? 1 : b8;                  // error: expected bool for the condition, not bit<8>
        b8 = !b8;                          // error: expected bool for '!', not bit<8>
        b8 = ~flag;                        // error: '~' is not defined for bool
        b8 = b8 << i8;                     // error: the amount of a shift must be unsigned, not int<8>
        b8 = b8 << -1;                     // error: the amount of a shift must not be negative, but is -1
        b8 = 1 << b8;                      // error: the left operand of this shift needs a width
        b16 = b8 ++ 8;                     // error: '++' needs operands with a width, not int 8
        b8 = b8 / 0;                       // error: division by zero
        b8 = b8 / -2;                      // error: '/' is not defined for negative numbers
        b8 = b8 % b8;                      // error: '%' needs values known at compile time
        b8 = b8 / 4;
        i8 = i8 / 2;                       // error: '/' is not defined for signed values (int<8>)
        b8 = 5 |+| 6;                      // error: '|+|' is not defined for int 5
        b8[8:1] = 1;                       // error: slice [8:1] is out of order or range: bit<8> has bits [7:0]
        b8 = b16[b8:0];                    // error: the bounds of a slice must be an integer known at compile time
        b8 = hs[2].a;                      // error: index 2 is out of range: the size is 2
        b8 = t[b8];                        // error: the index of a tuple must be an integer known at compile time
        b8 = t[2];                         // error: index 2 is out of range: tuple<bit<8>, bool> has 2 elements
        b8 = b16[3];                       // error: bit<16> cannot be indexed
        b8 = (bit<8>)i8;
        b16 = (bit<16>)i8;                 // error: int<8> cannot be cast to bit<16>
        b8 = (bit<8>)flag;                 // error: bool cannot be cast to bit<8>
        b8 = (bit<8>)h;                    // error: h_t cannot be cast to bit<8>
        b8 = ser_t.one + 1;
        ser_t e = 1;                       // error: expected ser_t for variable 'e', not int 1
        e = (ser_t)b8;
        port = b8;                         // error: expected port_t, not bit<8>
        port = (port_t)b8 + 1;             // error: '+' needs operands of one type, not port_t and int 1
        if (e_t.x == ser_t.one) { }        // error: e_t and bit<8> cannot be compared
        if (e_t.x < e_t.y) { }             // error: '<' is not defined for e_t
        if (h == s) { }                    // error: h_t and s_t cannot be compared
        if (h == { 1 }) { }
        s = { 1, 2, 3 };                   // error: s_t needs 2 values, not 3
        s = { a = 1 };                     // error: field 'b' of s_t has no value
        s = { a = 1, c = 2, ... };         // error: s_t has no field 'c'
        s = { a = 1, a = 2, b = 3 };       // error: field 'a' has two values
        s = { 1, flag };                   // error: expected bit<16>, not bool
        s = (s_t){ 1, ... };
        b8 = h_t;                          // error: type h_t is not a value
        b8 = b8.minSizeInBits;             // error: bit<8> has no member 'minSizeInBits'
        b8 = hs.next.a;                    // error: 'next' of a header stack can only be used in a parser
    }
}
