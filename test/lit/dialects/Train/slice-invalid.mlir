// RUN: ds-opt %s --split-input-file --verify-diagnostics

func.func @slice_c1(%x: tensor<7x4xf32>) {
  // expected-error @+2 {{op failed to infer returned types}}
  // expected-error @+1 {{'steps' has 1 entries for 'tensor<7x4xf32>'}}
  %0 = train.slice %x from [0, 0] size [3, 4] step [1] : (tensor<7x4xf32>) -> tensor<3x4xf32>
  return
}

// -----

func.func @slice_c2_start(%x: tensor<7xf32>) {
  // expected-error @+2 {{op failed to infer returned types}}
  // expected-error @+1 {{dimension 0: start -1, size 3, step 1 must be >= 0, >= 0, >= 1}}
  %0 = train.slice %x from [-1] size [3] step [1] : (tensor<7xf32>) -> tensor<3xf32>
  return
}

// -----

func.func @slice_c2_step(%x: tensor<7xf32>) {
  // expected-error @+2 {{op failed to infer returned types}}
  // expected-error @+1 {{dimension 0: start 0, size 3, step 0 must be >= 0, >= 0, >= 1}}
  %0 = train.slice %x from [0] size [3] step [0] : (tensor<7xf32>) -> tensor<3xf32>
  return
}

// -----

// 1, 4, 7: the last index is one too far.
func.func @slice_c3(%x: tensor<7xf32>) {
  // expected-error @+2 {{op failed to infer returned types}}
  // expected-error @+1 {{dimension 0: start 1, size 3, step 3 read past its end 7}}
  %0 = train.slice %x from [1] size [3] step [3] : (tensor<7xf32>) -> tensor<3xf32>
  return
}

// -----

// Products of sizes and steps do not overflow.
func.func @slice_c3_huge(%x: tensor<7xf32>) {
  // expected-error @+2 {{op failed to infer returned types}}
  // expected-error @+1 {{read past its end 7}}
  %0 = train.slice %x from [0] size [3] step [9223372036854775807] : (tensor<7xf32>) -> tensor<3xf32>
  return
}
