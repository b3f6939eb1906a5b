// RUN: ds-opt %s --split-input-file --verify-diagnostics

// expected-error @+1 {{op has 2 axes and 1 sizes}}
dist.mesh @mesh_c1_count ["pipe", "data"] [1]

// -----

// expected-error @+1 {{op axis "data" stands twice}}
dist.mesh @mesh_c1_twice ["data", "data"] [1, 2]

// -----

// expected-error @+1 {{op axis "data" has size 0; it must be at least 1}}
dist.mesh @mesh_c2 ["data"] [0]
