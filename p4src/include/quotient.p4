// Long division without a divider: 6 + 20 consecutive steps, each a comparison and a
// subtraction or a shift by a constant.
#ifndef P4CC_QUOTIENT_P4
#define P4CC_QUOTIENT_P4

// The subtrahend never exceeds the rest, so nothing is shifted out.
#define NORMALIZE(bits)                  \
    if (subtrahend <= (rest >> bits)) {  \
        subtrahend = subtrahend << bits; \
        digit = digit << bits;           \
    }

#define NEXT_DIGIT                   \
    if (rest >= subtrahend) {        \
        rest = rest - subtrahend;    \
        quotient = quotient + digit; \
    }                                \
    subtrahend = subtrahend >> 1;    \
    digit = digit >> 1;

// dividend / divisor, rounded down to `digits` significant binary digits, from 10 to 20. Ten digits
// are within 0.2%. The divisor must not be 0.
control Quotient(in bit<64> dividend, in bit<64> divisor, out bit<64> quotient)(bit<8> digits) {
    bit<64> rest;
    bit<64> subtrahend;
    bit<64> digit = 1;

    apply {
        rest = dividend;
        subtrahend = divisor;
        quotient = 0;
        NORMALIZE(32) NORMALIZE(16) NORMALIZE(8) NORMALIZE(4) NORMALIZE(2) NORMALIZE(1)
        NEXT_DIGIT NEXT_DIGIT NEXT_DIGIT NEXT_DIGIT NEXT_DIGIT
        NEXT_DIGIT NEXT_DIGIT NEXT_DIGIT NEXT_DIGIT NEXT_DIGIT
        if (digits > 10) { NEXT_DIGIT }
        if (digits > 11) { NEXT_DIGIT }
        if (digits > 12) { NEXT_DIGIT }
        if (digits > 13) { NEXT_DIGIT }
        if (digits > 14) { NEXT_DIGIT }
        if (digits > 15) { NEXT_DIGIT }
        if (digits > 16) { NEXT_DIGIT }
        if (digits > 17) { NEXT_DIGIT }
        if (digits > 18) { NEXT_DIGIT }
        if (digits > 19) { NEXT_DIGIT }
    }
}

#endif
