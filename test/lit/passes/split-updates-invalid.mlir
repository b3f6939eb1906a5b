// RUN: ds-opt %s --ds-split-updates=elements=0 --verify-diagnostics

// expected-error@+1 {{elements is 0; it must be at least 1}}
module {
}
