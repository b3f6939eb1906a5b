// RUN: ds-opt %s --ds-elide-single-gathers --verify-diagnostics

// expected-error@+1 {{has no dist.mesh}}
module {
}
