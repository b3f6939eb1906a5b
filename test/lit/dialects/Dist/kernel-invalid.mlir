// RUN: ds-opt %s --split-input-file --verify-diagnostics

dist.fragment @kernel_c1 phase forward stage 0 {
  // expected-error @+1 {{op has 2 accesses, 1 tensors and 0 places of variables}}
  %y = dist.kernel "copy" {}() access [1, 2] as [tensor<4xf32>] : () -> tensor<4xf32>
}

// -----

dist.fragment @kernel_c2_access phase forward stage 0 {
  // expected-error @+1 {{op operand 0 has access 3; a value is read (1) or written (2)}}
  %y = dist.kernel "increment" {}() access [3] as [tensor<i64>] : () -> tensor<i64>
}

// -----

dist.fragment @kernel_c2_count phase forward stage 0 {
  // expected-error @+1 {{op reads 1 and writes 1 values, but has 0 inputs and 1 results}}
  %y = dist.kernel "copy" {}() access [1, 2] as [tensor<4xf32>, tensor<4xf32>] : () -> tensor<4xf32>
}

// -----

dist.fragment @kernel_c3 phase forward stage 0 {
  // expected-error @+1 {{op @w is not a train.variable}}
  dist.kernel "increment" {}() access [3] as [tensor<i64>] of [@w] : () -> ()
}

// -----

dist.fragment @kernel_c3_kind phase forward stage 0 {
  // expected-error @+1 {{op operand 0 is of "w", which is neither unit nor a symbol}}
  dist.kernel "increment" {}() access [3] as [tensor<i64>] of ["w"] : () -> ()
}

// -----

dist.fragment @kernel_c4 phase forward stage 0 {
  // expected-error @+1 {{op has a workspace of -1 bytes}}
  %y = dist.kernel "rand" {}() access [2] as [tensor<4xf32>] workspace -1 : () -> tensor<4xf32>
}
