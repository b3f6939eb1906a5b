// RUN: split-file %s %t
// RUN: not ds-opt %t/none.mlir --ds-declare-mesh=data=0 2>&1 | FileCheck %s --check-prefix=SIZE
// RUN: ds-opt %t/other.mlir --ds-declare-mesh=data=2 --verify-diagnostics

// SIZE: error: data is 0; it must be at least 1
//--- none.mlir
//--- other.mlir
// expected-error @+1 {{op has 4 ranks along axis "data", and 2 were asked for}}
dist.mesh @mesh ["data"] [4]
