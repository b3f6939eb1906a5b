// RUN: ds-opt %s --ds-offload-optimizer=least-bytes=-1 --verify-diagnostics

// expected-error@+1 {{least-bytes is -1; it must not be negative}}
module {
}
