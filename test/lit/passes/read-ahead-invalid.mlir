// RUN: ds-opt %s --ds-read-ahead=bytes=-1 --verify-diagnostics

// Tests that no negative number of bytes is read.
// expected-error@below {{bytes is -1; it must not be negative}}
module {
}
