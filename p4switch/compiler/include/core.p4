// The core library of P4-16 (language specification, appendix D).

#ifndef _CORE_P4_
#define _CORE_P4_

error {
    NoError,
    PacketTooShort,
    NoMatch,
    StackOutOfBounds,
    HeaderTooShort,
    ParserTimeout,
    ParserInvalidArgument
}

match_kind {
    exact,
    ternary,
    lpm
}

extern packet_in {
    // Fills a fixed-size header and moves past it. Errors: PacketTooShort, StackOutOfBounds.
    void extract<T>(out T hdr);
    // The same for a header with one varbit field, of which this many bits are present. Further error: HeaderTooShort.
    void extract<T>(out T variableSizeHeader, in bit<32> variableFieldSizeInBits);
    // Returns the next bits without moving past them.
    T lookahead<T>();
    // Skips bits.
    void advance(in bit<32> sizeInBits);
    // Returns the length of the packet in bytes.
    bit<32> length();
}

extern packet_out {
    // Appends the valid parts of a header, stack, union, or struct of these.
    void emit<T>(in T hdr);
}

// Goes to state reject with that error unless the condition holds.
extern void verify(in bool check, in error toSignal);

@noWarn("unused")
action NoAction() {}

// Checked by the compiler, which prints the message if the condition does not hold.
extern bool static_assert(bool check, string message);
extern bool static_assert(bool check);

#endif
