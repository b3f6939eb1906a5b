// This pass has no error of its own; here is what it must leave alone.
// RUN: ds-opt %s --ds-fuse-loss-gradient | FileCheck %s
// CHECK-NOT: train.cross_entropy_with_grad

train.variable metric @loss : tensor<f32>

// Tests a gradient that depends on the loss.
func.func @of_the_loss(%x: tensor<3x5xf32>, %l: tensor<3xi64>) -> tensor<3x5xf32> {
  %loss, %lse = train.cross_entropy mean %x, %l ignore 0 : (tensor<3x5xf32>, tensor<3xi64>) -> (tensor<f32>, tensor<3xf32>)
  %g = train.exp %loss : (tensor<f32>) -> tensor<f32>
  %dx = train.cross_entropy_grad mean %x, %l, %lse, %g ignore 0 : (tensor<3x5xf32>, tensor<3xi64>, tensor<3xf32>, tensor<f32>) -> tensor<3x5xf32>
  return %dx : tensor<3x5xf32>
}

// Tests other logits, another reduction, log sums that something else reads, and a metric that something reads in between.
func.func @other_logits(%x: tensor<3x5xf32>, %y: tensor<3x5xf32>, %l: tensor<3xi64>, %g: tensor<f32>) -> (tensor<f32>, tensor<3x5xf32>) {
  %loss, %lse = train.cross_entropy mean %x, %l ignore 0 : (tensor<3x5xf32>, tensor<3xi64>) -> (tensor<f32>, tensor<3xf32>)
  %dx = train.cross_entropy_grad mean %y, %l, %lse, %g ignore 0 : (tensor<3x5xf32>, tensor<3xi64>, tensor<3xf32>, tensor<f32>) -> tensor<3x5xf32>
  return %loss, %dx : tensor<f32>, tensor<3x5xf32>
}
func.func @other_reduction(%x: tensor<3x5xf32>, %l: tensor<3xi64>, %g: tensor<f32>) -> (tensor<f32>, tensor<3x5xf32>) {
  %loss, %lse = train.cross_entropy mean %x, %l ignore 0 : (tensor<3x5xf32>, tensor<3xi64>) -> (tensor<f32>, tensor<3xf32>)
  %dx = train.cross_entropy_grad sum %x, %l, %lse, %g ignore 0 : (tensor<3x5xf32>, tensor<3xi64>, tensor<3xf32>, tensor<f32>) -> tensor<3x5xf32>
  return %loss, %dx : tensor<f32>, tensor<3x5xf32>
}
func.func @log_sums(%x: tensor<3x5xf32>, %l: tensor<3xi64>, %g: tensor<f32>) -> (tensor<3xf32>, tensor<3x5xf32>) {
  %loss, %lse = train.cross_entropy mean %x, %l ignore 0 : (tensor<3x5xf32>, tensor<3xi64>) -> (tensor<f32>, tensor<3xf32>)
  %dx = train.cross_entropy_grad mean %x, %l, %lse, %g ignore 0 : (tensor<3x5xf32>, tensor<3xi64>, tensor<3xf32>, tensor<f32>) -> tensor<3x5xf32>
  return %lse, %dx : tensor<3xf32>, tensor<3x5xf32>
}
func.func @read_metric(%x: tensor<3x5xf32>, %l: tensor<3xi64>, %g: tensor<f32>) -> (tensor<f32>, tensor<3x5xf32>) {
  %loss, %lse = train.cross_entropy mean %x, %l ignore 0 : (tensor<3x5xf32>, tensor<3xi64>) -> (tensor<f32>, tensor<3xf32>)
  train.accumulate %loss into @loss : tensor<f32>
  %sum = train.read @loss : tensor<f32>
  %dx = train.cross_entropy_grad mean %x, %l, %lse, %g ignore 0 : (tensor<3x5xf32>, tensor<3xi64>, tensor<3xf32>, tensor<f32>) -> tensor<3x5xf32>
  return %sum, %dx : tensor<f32>, tensor<3x5xf32>
}
