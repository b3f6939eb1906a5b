// RUN: ds-opt %s --split-input-file --verify-diagnostics

func.func @pool_c1_rank(%x: tensor<2x3xf32>) {
  // expected-error @+2 {{op failed to infer returned types}}
  // expected-error @+1 {{input 'tensor<2x3xf32>' must be [N, C, spatial...] with one to three dimensions}}
  %0 = train.max_pool %x window [] strides [] dilations [] low [] high [] : (tensor<2x3xf32>) -> tensor<2x3xf32>
  return
}

// -----

func.func @pool_c1_value(%x: tensor<2x3x7xf32>) {
  // expected-error @+2 {{op failed to infer returned types}}
  // expected-error @+1 {{'strides' holds 0; it must be at least 1}}
  %0 = train.max_pool %x window [2] strides [0] dilations [1] low [0] high [0] : (tensor<2x3x7xf32>) -> tensor<2x3x6xf32>
  return
}

// -----

func.func @pool_c2_fits(%x: tensor<2x3x7xf32>) {
  // expected-error @+2 {{op failed to infer returned types}}
  // expected-error @+1 {{spatial dimension 0 of 7, padded by 0 and 0, is too small for a window of 8}}
  %0 = train.average_pool %x window [8] strides [1] dilations [1] low [0] high [0] : (tensor<2x3x7xf32>) -> tensor<2x3x1xf32>
  return
}

// -----

func.func @pool_c2_before(%x: tensor<2x3x7xf32>) {
  // expected-error @+2 {{op failed to infer returned types}}
  // expected-error @+1 {{a window of 2 with dilation 1 and stride 1 would hold no element of the input}}
  %0 = train.average_pool %x window [2] strides [1] dilations [1] low [2] high [0] : (tensor<2x3x7xf32>) -> tensor<2x3x8xf32>
  return
}

// -----

func.func @pool_c2_after(%x: tensor<2x3x7xf32>) {
  // expected-error @+2 {{op failed to infer returned types}}
  // expected-error @+1 {{would hold no element of the input}}
  %0 = train.max_pool %x window [2] strides [1] dilations [1] low [0] high [2] : (tensor<2x3x7xf32>) -> tensor<2x3x8xf32>
  return
}

// -----

// One element before the input and one after it.
func.func @pool_c2_around(%x: tensor<2x3x2xf32>) {
  // expected-error @+2 {{op failed to infer returned types}}
  // expected-error @+1 {{a window of 2 with dilation 3 and stride 1 would hold no element of the input}}
  %0 = train.max_pool %x window [2] strides [1] dilations [3] low [1] high [1] : (tensor<2x3x2xf32>) -> tensor<2x3x1xf32>
  return
}

// -----

func.func @max_pool_grad_c1(%g: tensor<2x3x5xf32>, %x: tensor<2x3x7xf32>) {
  // expected-error @+2 {{op failed to infer returned types}}
  // expected-error @+1 {{gradient 'tensor<2x3x5xf32>' is not that of a pool of 'tensor<2x3x7xf32>', which is 'tensor<2x3x6xf32>'}}
  %0 = train.max_pool_grad %g, %x window [2] strides [1] dilations [1] low [0] high [0] : (tensor<2x3x5xf32>, tensor<2x3x7xf32>) -> tensor<2x3x7xf32>
  return
}

// -----

func.func @average_pool_grad_c1(%g: tensor<2x3x5xf32>) {
  // expected-error @+2 {{op failed to infer returned types}}
  // expected-error @+1 {{gradient 'tensor<2x3x5xf32>' is not that of a pool of 'tensor<2x3x7xf32>'}}
  %0 = train.average_pool_grad %g window [2] strides [1] dilations [1] low [0] high [0] into [2, 3, 7] : (tensor<2x3x5xf32>) -> tensor<2x3x7xf32>
  return
}
