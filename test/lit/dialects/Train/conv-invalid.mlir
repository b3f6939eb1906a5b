// RUN: ds-opt %s --split-input-file --verify-diagnostics

func.func @conv_c1_channels(%x: tensor<1x4x5x5xf32>, %w: tensor<6x3x3x3xf32>) {
  // expected-error @+2 {{op failed to infer returned types}}
  // expected-error @+1 {{input 'tensor<1x4x5x5xf32>' and weight 'tensor<6x3x3x3xf32>' with 1 groups must be [N, C, spatial...] and [M, C / groups, window...]}}
  %0 = train.conv %x, %w strides [1, 1] dilations [1, 1] low [0, 0] high [0, 0] groups 1 : (tensor<1x4x5x5xf32>, tensor<6x3x3x3xf32>) -> tensor<1x6x3x3xf32>
  return
}

// -----

func.func @conv_c1_groups(%x: tensor<1x4x5x5xf32>, %w: tensor<5x2x3x3xf32>) {
  // expected-error @+2 {{op failed to infer returned types}}
  // expected-error @+1 {{with 2 groups must be}}
  %0 = train.conv %x, %w strides [1, 1] dilations [1, 1] low [0, 0] high [0, 0] groups 2 : (tensor<1x4x5x5xf32>, tensor<5x2x3x3xf32>) -> tensor<1x5x3x3xf32>
  return
}

// -----

func.func @conv_c2_entries(%x: tensor<1x4x5x5xf32>, %w: tensor<6x4x3x3xf32>) {
  // expected-error @+2 {{op failed to infer returned types}}
  // expected-error @+1 {{'strides' has 1 entries for 2 spatial dimensions}}
  %0 = train.conv %x, %w strides [1] dilations [1, 1] low [0, 0] high [0, 0] groups 1 : (tensor<1x4x5x5xf32>, tensor<6x4x3x3xf32>) -> tensor<1x6x3x3xf32>
  return
}

// -----

func.func @conv_c2_value(%x: tensor<1x4x5x5xf32>, %w: tensor<6x4x3x3xf32>) {
  // expected-error @+2 {{op failed to infer returned types}}
  // expected-error @+1 {{'low' holds -1; it must be at least 0 and at most 2^24}}
  %0 = train.conv %x, %w strides [1, 1] dilations [1, 1] low [0, -1] high [0, 0] groups 1 : (tensor<1x4x5x5xf32>, tensor<6x4x3x3xf32>) -> tensor<1x6x3x3xf32>
  return
}

// -----

func.func @conv_c3(%x: tensor<1x4x5x5xf32>, %w: tensor<6x4x3x3xf32>) {
  // expected-error @+2 {{op failed to infer returned types}}
  // expected-error @+1 {{spatial dimension 1 of 5, padded by 0 and 1, is too small for a window of 3 with dilation 3}}
  %0 = train.conv %x, %w strides [1, 1] dilations [1, 3] low [0, 0] high [0, 1] groups 1 : (tensor<1x4x5x5xf32>, tensor<6x4x3x3xf32>) -> tensor<1x6x3x1xf32>
  return
}

// -----

func.func @conv_c4(%x: tensor<1x4x5x5xf32>, %w: tensor<6x4x3x3xf32>, %b: tensor<4xf32>) {
  // expected-error @+2 {{op failed to infer returned types}}
  // expected-error @+1 {{bias 'tensor<4xf32>' must be a vector of 6 'f32'}}
  %0 = train.conv %x, %w bias %b strides [1, 1] dilations [1, 1] low [0, 0] high [0, 0] groups 1 : (tensor<1x4x5x5xf32>, tensor<6x4x3x3xf32>, tensor<4xf32>) -> tensor<1x6x3x3xf32>
  return
}

// -----

func.func @conv_input_grad_c1(%g: tensor<1x6x3x3xf32>, %w: tensor<6x4x3x3xf32>) {
  // expected-error @+2 {{op failed to infer returned types}}
  // expected-error @+1 {{gradient 'tensor<1x6x3x3xf32>' is not that of a convolution of 'tensor<1x4x6x5xf32>', which is 'tensor<1x6x4x3xf32>'}}
  %0 = train.conv_input_grad %g, %w strides [1, 1] dilations [1, 1] low [0, 0] high [0, 0] groups 1 into [1, 4, 6, 5] : (tensor<1x6x3x3xf32>, tensor<6x4x3x3xf32>) -> tensor<1x4x6x5xf32>
  return
}

// -----

func.func @conv_weight_grad_c1(%g: tensor<1x6x3x3xf32>, %x: tensor<1x4x5x5xf32>) {
  // expected-error @+2 {{op failed to infer returned types}}
  // expected-error @+1 {{gradient 'tensor<1x6x3x3xf32>' is not that of a convolution by 'tensor<6x4x2x3xf32>', which is 'tensor<1x6x4x3xf32>'}}
  %0 = train.conv_weight_grad %g, %x strides [1, 1] dilations [1, 1] low [0, 0] high [0, 0] groups 1 into [6, 4, 2, 3] : (tensor<1x6x3x3xf32>, tensor<1x4x5x5xf32>) -> tensor<6x4x2x3xf32>
  return
}

// -----

func.func @conv_weight_grad_c2(%dy: tensor<1x2x4xf32>, %x: tensor<1x3x4xf32>) {
  // expected-error @+2 {{op failed to infer returned types}}
  // expected-error @+1 {{'wide' is for operands of bf16 or f16, not of 'f32'}}
  %0 = train.conv_weight_grad %dy, %x strides [1] dilations [1] low [0] high [0] groups 1 into [2, 3, 1] {wide} : (tensor<1x2x4xf32>, tensor<1x3x4xf32>) -> tensor<2x3x1xf32>
  return
}
