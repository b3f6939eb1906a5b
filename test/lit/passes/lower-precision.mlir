// RUN: ds-opt %s --ds-lower-precision --split-input-file | FileCheck %s

// Tests a linear layer: parameters are read in f32 and rounded, the loss is f32.
// CHECK-LABEL: func.func @forward
train.variable parameter @w : tensor<8x4xf32> from #train.fill<0.0> {trainable}
train.variable parameter @b : tensor<4xf32> from #train.fill<0.0> {trainable}
func.func @forward(%x: tensor<2x8xf32>, %labels: tensor<2xi64>) -> tensor<f32> {
  // CHECK: %[[W:.*]] = train.read @w : tensor<8x4xf32>
  // CHECK: %[[B:.*]] = train.read @b : tensor<4xf32>
  %w = train.read @w : tensor<8x4xf32>
  %b = train.read @b : tensor<4xf32>
  // CHECK-DAG: %[[LX:.*]] = train.cast %arg0 to bf16
  // CHECK-DAG: %[[LW:.*]] = train.cast %[[W]] to bf16
  // CHECK-DAG: %[[LB:.*]] = train.cast %[[B]] to bf16
  // CHECK: %[[Y:.*]] = train.matmul %[[LX]], %[[LW]] bias %[[LB]] : (tensor<2x8xbf16>, tensor<8x4xbf16>, tensor<4xbf16>) -> tensor<2x4xbf16>
  %y = train.matmul %x, %w bias %b : (tensor<2x8xf32>, tensor<8x4xf32>, tensor<4xf32>) -> tensor<2x4xf32>
  // CHECK: %[[LOSS:.*]], %{{.*}} = train.cross_entropy mean %[[Y]], %arg1 {{.*}} -> (tensor<f32>, tensor<2xf32>)
  %loss, %lse = train.cross_entropy mean %y, %labels ignore -100 : (tensor<2x4xf32>, tensor<2xi64>) -> (tensor<f32>, tensor<2xf32>)
  // CHECK: return %[[LOSS]] : tensor<f32>
  return %loss : tensor<f32>
}

// -----

// Tests the table, op by op: products, softmax and attention, norms with scales of f32, sums that stay f32.
// CHECK-LABEL: func.func @forward
train.variable parameter @w : tensor<8xf32> from #train.fill<0.0> {trainable}
train.variable parameter @k : tensor<2x1x4x8xf32> from #train.fill<0.0> {trainable}
func.func @forward(%x: tensor<2x1x4x8xf32>) -> tensor<f32> {
  %w = train.read @w : tensor<8xf32>
  %k = train.read @k : tensor<2x1x4x8xf32>
  // CHECK: %[[SUM:.*]] = train.add {{.*}} -> tensor<2x1x4x8xf32>
  // CHECK: train.cast %[[SUM]] to bf16
  %0 = train.add %x, %k : (tensor<2x1x4x8xf32>, tensor<2x1x4x8xf32>) -> tensor<2x1x4x8xf32>
  // CHECK: train.rms_norm {{.*}} : (tensor<2x1x4x8xbf16>, tensor<8xf32>) -> (tensor<2x1x4x8xbf16>, tensor<2x1x4xf32>)
  %1, %rrms = train.rms_norm %0, %w epsilon 1.0e-5 : (tensor<2x1x4x8xf32>, tensor<8xf32>) -> (tensor<2x1x4x8xf32>, tensor<2x1x4xf32>)
  // CHECK: train.layer_norm {{.*}} : (tensor<2x1x4x8xbf16>, tensor<8xf32>, tensor<8xf32>) -> (tensor<2x1x4x8xbf16>, tensor<2x1x4xf32>, tensor<2x1x4xf32>)
  %2, %mean, %rstd = train.layer_norm %1, %w, %w epsilon 1.0e-5 : (tensor<2x1x4x8xf32>, tensor<8xf32>, tensor<8xf32>) -> (tensor<2x1x4x8xf32>, tensor<2x1x4xf32>, tensor<2x1x4xf32>)
  // CHECK: train.attention {{.*}} -> (tensor<2x1x4x8xbf16>, tensor<2x1x4xf32>)
  %3, %lse = train.attention %2, %2, %2 scale 0.5 causal : (tensor<2x1x4x8xf32>, tensor<2x1x4x8xf32>, tensor<2x1x4x8xf32>) -> (tensor<2x1x4x8xf32>, tensor<2x1x4xf32>)
  // CHECK: train.packed_attention {{.*}} -> (tensor<2x1x2x8xbf16>, tensor<2x2x1xf32>)
  %packed, %sums = train.packed_attention %2 heads 2 scale 0.5 : (tensor<2x1x4x8xf32>) -> (tensor<2x1x2x8xf32>, tensor<2x2x1xf32>)
  // CHECK: train.softmax {{.*}} -> tensor<2x1x4x8xbf16>
  %4 = train.softmax %3 along 3 : (tensor<2x1x4x8xf32>) -> tensor<2x1x4x8xf32>
  // CHECK: train.dropout {{.*}} -> tensor<2x1x4x8xbf16>
  %5 = train.dropout %4 ratio 0.5 id 0 : (tensor<2x1x4x8xf32>) -> tensor<2x1x4x8xf32>
  // CHECK: train.reduce_max {{.*}} -> tensor<2x1x4xbf16>
  %6 = train.reduce_max %5 over [3] : (tensor<2x1x4x8xf32>) -> tensor<2x1x4xf32>
  // CHECK: %[[FULL:.*]] = train.cast %{{.*}} to f32 : (tensor<2x1x4xbf16>) -> tensor<2x1x4xf32>
  // CHECK: train.log_softmax %[[FULL]] {{.*}} -> tensor<2x1x4xf32>
  %7 = train.log_softmax %6 along 2 : (tensor<2x1x4xf32>) -> tensor<2x1x4xf32>
  // CHECK: %[[MEAN:.*]] = train.reduce_mean %{{.*}} over [0, 1, 2, 3] {wide} : (tensor<2x1x4x8xbf16>) -> tensor<f32>
  %8 = train.reduce_mean %5 over [0, 1, 2, 3] : (tensor<2x1x4x8xf32>) -> tensor<f32>
  // CHECK: train.reduce_sum %{{.*}} over [0, 1, 2] : (tensor<2x1x4xf32>) -> tensor<f32>
  %9 = train.reduce_sum %7 over [0, 1, 2] : (tensor<2x1x4xf32>) -> tensor<f32>
  // CHECK: train.add %{{.*}} : (tensor<f32>, tensor<f32>) -> tensor<f32>
  %10 = train.add %8, %9 : (tensor<f32>, tensor<f32>) -> tensor<f32>
  return %10 : tensor<f32>
}

// -----

// Tests what no parameter reaches: angles of positions and booleans stay; and an elementwise chain, which is rounded at its end.
// CHECK-LABEL: func.func @forward
train.variable parameter @w : tensor<2x8xf32> from #train.fill<0.0> {trainable}
train.variable buffer @frequencies : tensor<8xf32> from #train.fill<0.0>
func.func @forward(%x: tensor<2x8xf32>, %hidden: tensor<2x8xi1>) -> tensor<f32> {
  %w = train.read @w : tensor<2x8xf32>
  %f = train.read @frequencies : tensor<8xf32>
  // CHECK: train.mul %arg0, %{{.*}} -> tensor<2x8xf32>
  // CHECK: %[[COS:.*]] = train.cos %{{.*}} : (tensor<2x8xf32>) -> tensor<2x8xf32>
  %0 = train.mul %x, %f : (tensor<2x8xf32>, tensor<8xf32>) -> tensor<2x8xf32>
  %1 = train.cos %0 : (tensor<2x8xf32>) -> tensor<2x8xf32>
  // CHECK: %[[TURNED:.*]] = train.mul %{{.*}}, %[[COS]] : (tensor<2x8xf32>, tensor<2x8xf32>) -> tensor<2x8xf32>
  %2 = train.mul %w, %1 : (tensor<2x8xf32>, tensor<2x8xf32>) -> tensor<2x8xf32>
  // CHECK: %[[LOW:.*]] = train.constant dense<-3.38953139E+38> : tensor<f32>
  // CHECK: %[[SEEN:.*]] = train.select %arg1, %[[TURNED]], %[[LOW]] : {{.*}} -> tensor<2x8xf32>
  // CHECK: train.cast %[[SEEN]] to bf16
  %lowest = train.constant dense<0xFF7FFFFF> : tensor<f32>
  %3 = train.select %hidden, %2, %lowest : (tensor<2x8xi1>, tensor<2x8xf32>, tensor<f32>) -> tensor<2x8xf32>
  %4 = train.reduce_sum %3 over [0, 1] : (tensor<2x8xf32>) -> tensor<f32>
  return %4 : tensor<f32>
}

// -----

// Tests that the rows of an embedding are rounded, not the whole table; that a large constant of f32 keeps within bf16's
// range before anything of bf16 reads it; and that a parameter which scales a loss leaves it f32.
// CHECK-LABEL: func.func @forward
train.variable parameter @table : tensor<50x8xf32> from #train.fill<0.0> {trainable}
train.variable parameter @gain : tensor<f32> from #train.fill<1.0> {trainable}
func.func @forward(%ids: tensor<2xi64>, %seen: tensor<2x1xi1>) -> tensor<f32> {
  %table = train.read @table : tensor<50x8xf32>
  %gain = train.read @gain : tensor<f32>
  // CHECK: %[[ROWS:.*]] = train.gather %{{.*}} -> tensor<2x8xf32>
  %rows = train.gather %table, %ids along 0 : (tensor<50x8xf32>, tensor<2xi64>) -> tensor<2x8xf32>
  // CHECK-DAG: train.constant dense<-3.38953139E+38> : tensor<f32>
  %zero = train.constant dense<0.0> : tensor<f32>
  %lowest = train.constant dense<0xFF7FFFFF> : tensor<f32>
  %mask = train.select %seen, %zero, %lowest : (tensor<2x1xi1>, tensor<f32>, tensor<f32>) -> tensor<2x1xf32>
  // CHECK: %[[MASKED:.*]] = train.add %[[ROWS]], %{{.*}} -> tensor<2x8xf32>
  // CHECK: train.cast %[[MASKED]] to bf16 : (tensor<2x8xf32>) -> tensor<2x8xbf16>
  %0 = train.add %rows, %mask : (tensor<2x8xf32>, tensor<2x1xf32>) -> tensor<2x8xf32>
  %1 = train.softmax %0 along 1 : (tensor<2x8xf32>) -> tensor<2x8xf32>
  %2 = train.reduce_sum %1 over [0, 1] : (tensor<2x8xf32>) -> tensor<f32>
  // CHECK: %[[LOSS:.*]] = train.mul %{{.*}}, %{{.*}} : (tensor<f32>, tensor<f32>) -> tensor<f32>
  // CHECK: return %[[LOSS]]
  %3 = train.mul %2, %gain : (tensor<f32>, tensor<f32>) -> tensor<f32>
  return %3 : tensor<f32>
}

// -----

// Tests that a model of f64 stays as it is, and that a loss of bf16 is returned in f32.
// CHECK-LABEL: func.func @forward
train.variable parameter @w : tensor<f64> from #train.fill<0.0> {trainable}
func.func @forward(%x: tensor<f64>) -> tensor<f64> {
  %w = train.read @w : tensor<f64>
  // CHECK: train.mul %arg0, %{{.*}} : (tensor<f64>, tensor<f64>) -> tensor<f64>
  %0 = train.mul %x, %w : (tensor<f64>, tensor<f64>) -> tensor<f64>
  return %0 : tensor<f64>
}

// -----

// CHECK-LABEL: func.func @forward
train.variable parameter @w : tensor<f32> from #train.fill<0.0> {trainable}
func.func @forward(%x: tensor<f32>) -> tensor<f32> {
  %w = train.read @w : tensor<f32>
  // CHECK: %[[PRODUCT:.*]] = train.mul %{{.*}} -> tensor<f32>
  // CHECK: %[[Y:.*]] = train.cast %[[PRODUCT]] to bf16
  // CHECK: %[[LOSS:.*]] = train.cast %[[Y]] to f32
  // CHECK: return %[[LOSS]] : tensor<f32>
  %0 = train.mul %x, %w : (tensor<f32>, tensor<f32>) -> tensor<f32>
  return %0 : tensor<f32>
}

// -----

// Tests that what two ops read is rounded for both, and that a product's operands are.
// CHECK-LABEL: func.func @forward
train.variable parameter @w : tensor<4x4xf32> from #train.fill<0.0> {trainable}
func.func @forward(%x: tensor<4x4xf32>) -> tensor<f32> {
  %w = train.read @w : tensor<4x4xf32>
  // CHECK: %[[H:.*]] = train.matmul {{.*}} -> tensor<4x4xbf16>
  %h = train.matmul %x, %w : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  // CHECK: %[[T:.*]] = train.tanh %{{.*}} : (tensor<4x4xf32>) -> tensor<4x4xf32>
  // CHECK: %[[LT:.*]] = train.cast %[[T]] to bf16
  %t = train.tanh %h : (tensor<4x4xf32>) -> tensor<4x4xf32>
  // CHECK: train.matmul %[[LT]], %{{.*}} -> tensor<4x4xbf16>
  %y = train.matmul %t, %w : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  // CHECK: train.cast %[[LT]] to f32
  // CHECK: train.add
  %z = train.add %y, %t : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  %loss = train.reduce_sum %z over [0, 1] : (tensor<4x4xf32>) -> tensor<f32>
  return %loss : tensor<f32>
}

// -----

// Tests that a chain which reads a value twice widens it once.
// CHECK-LABEL: func.func @forward
train.variable parameter @w : tensor<4x4xf32> from #train.fill<0.0> {trainable}
func.func @forward(%x: tensor<4x4xf32>) -> tensor<f32> {
  %w = train.read @w : tensor<4x4xf32>
  // CHECK: %[[LOW:.*]] = train.matmul
  // CHECK: %[[WIDE:.*]] = train.cast %[[LOW]] to f32
  // CHECK-NEXT: %[[H:.*]] = train.tanh %[[WIDE]]
  // CHECK-NOT: train.cast
  // CHECK: train.mul %[[WIDE]], %[[H]]
  %0 = train.matmul %x, %w : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  %1 = train.tanh %0 : (tensor<4x4xf32>) -> tensor<4x4xf32>
  %2 = train.mul %0, %1 : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  %3 = train.reduce_mean %2 over [0, 1] : (tensor<4x4xf32>) -> tensor<f32>
  return %3 : tensor<f32>
}
