// RUN: ds-opt %s --split-input-file --verify-diagnostics

// expected-error @+1 {{op ranks [4, 3] are not ascending, disjoint pairs [first, last]}}
dist.role @role_c1_order ranks [4, 3] {
}

// -----

// expected-error @+1 {{op ranks [0, 3, 3, 5] are not ascending, disjoint pairs [first, last]}}
dist.role @role_c1_overlap ranks [0, 3, 3, 5] {
}

// -----

// expected-error @+1 {{op ranks [0] are not ascending, disjoint pairs [first, last]}}
dist.role @role_c1_odd ranks [0] {
}

// -----

// expected-error @+1 {{op ranks [] are not ascending, disjoint pairs [first, last]}}
dist.role @role_c1_none ranks [] {
}

// -----

// expected-error @+1 {{op ranks [-1, 3] are not ascending, disjoint pairs [first, last]}}
dist.role @role_c1_negative ranks [-1, 3] {
}
