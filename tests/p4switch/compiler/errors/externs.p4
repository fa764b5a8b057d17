extern Machine<T> {
    Machine(bit<32> size);
    Machine(in bit<8> size);               // error: 'Machine' is declared twice with the same parameters
                                           // error -1: parameter 'size' of constructor 'Machine' cannot have a direction
    abstract T step(in T x);
    void run();
    int number();                          // error: 'number' cannot return int
}

control c(inout bit<8> x) {
    Machine<bit<8>>(4) absent;             // error: abstract method 'step' of Machine<bit<8>> is not implemented
    Machine<bit<8>>(4) mistyped = {
        bit<16> step(in bit<8> y) { return 1; }  // error: method 'step' does not have the parameters and return type
    };
    Machine<bit<8>>(4) unknown = {
        bit<8> step(in bit<8> y) { return y; }
        bit<8> stop(in bit<8> y) { return y; }   // error: Machine<bit<8>> has no abstract method 'stop'
    };
    Machine(4) open = {                    // error: type argument T of the constructor of 'Machine' cannot be inferred
        bit<8> step(in bit<8> y) { return y; }
    };
    apply { }
}
