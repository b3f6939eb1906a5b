// RUN: ds-opt %s --split-input-file --verify-diagnostics

func.func @fused_c1_arguments(%x: tensor<2xf32>) {
  // expected-error @+1 {{op body takes ('tensor<3xf32>') and yields ('tensor<3xf32>'); the op has 'tensor<2xf32>' and 'tensor<3xf32>'}}
  %0 = train.fused %x {
  ^bb0(%a: tensor<3xf32>):
    %1 = train.neg %a : (tensor<3xf32>) -> tensor<3xf32>
    train.yield %1 : tensor<3xf32>
  } : (tensor<2xf32>) -> tensor<3xf32>
  return
}

// -----

func.func @fused_c1_results(%x: tensor<2xf32>) {
  // expected-error @+1 {{op body takes ('tensor<2xf32>') and yields (); the op has 'tensor<2xf32>' and 'tensor<2xf32>'}}
  %0 = train.fused %x {
  ^bb0(%a: tensor<2xf32>):
    train.yield
  } : (tensor<2xf32>) -> tensor<2xf32>
  return
}

// -----

func.func @fused_c2(%x: tensor<2x2xf32>) {
  // expected-error @+1 {{op body may hold elementwise ops and constants, not 'train.transpose'}}
  %0 = train.fused %x {
  ^bb0(%a: tensor<2x2xf32>):
    %1 = train.transpose %a by [1, 0] : (tensor<2x2xf32>) -> tensor<2x2xf32>
    train.yield %1 : tensor<2x2xf32>
  } : (tensor<2x2xf32>) -> tensor<2x2xf32>
  return
}

// -----

func.func @fused_c3(%x: tensor<2xf32>, %y: tensor<3xf32>) {
  // expected-error @+1 {{op results have different shapes: 'tensor<2xf32>', 'tensor<3xf32>'}}
  %0:2 = train.fused %x, %y {
  ^bb0(%a: tensor<2xf32>, %b: tensor<3xf32>):
    %1 = train.neg %a : (tensor<2xf32>) -> tensor<2xf32>
    %2 = train.neg %b : (tensor<3xf32>) -> tensor<3xf32>
    train.yield %1, %2 : tensor<2xf32>, tensor<3xf32>
  } : (tensor<2xf32>, tensor<3xf32>) -> (tensor<2xf32>, tensor<3xf32>)
  return
}

// -----

// The body is isolated: what it reads must be an operand.
func.func @isolated(%x: tensor<2xf32>) {
  // expected-note @+1 {{required by region isolation constraints}}
  %0 = train.fused %x {
  ^bb0(%a: tensor<2xf32>):
    // expected-error @+1 {{op using value defined outside the region}}
    %1 = train.neg %x : (tensor<2xf32>) -> tensor<2xf32>
    train.yield %1 : tensor<2xf32>
  } : (tensor<2xf32>) -> tensor<2xf32>
  return
}

// -----

func.func @yield_outside(%x: tensor<2xf32>) {
  // expected-error @+1 {{'train.yield' op expects parent op 'train.fused'}}
  train.yield %x : tensor<2xf32>
}
