// RUN: ds-opt %s --ds-insert-optimizer="optimizer=adamw weight-decay=0.5 lr=1 parameter-groups={{match = \"b\", weight_decay = 0.0}, {match = \"w\", lr_factor = 0.25}}" | FileCheck %s
// RUN: not ds-opt %s --ds-insert-optimizer="optimizer=adamw parameter-groups={{match = \"w\"}, {match = \"w$\"}}" 2>&1 | FileCheck %s --check-prefix=UNUSED
// RUN: not ds-opt %s --ds-insert-optimizer="optimizer=adamw parameter-groups={{match = \"(\"}}" 2>&1 | FileCheck %s --check-prefix=REGEX

// Tests that the first group that matches decides: bias has no decay and the schedule's rate, w a quarter of the rate.
// CHECK-LABEL: func.func @update()
// CHECK: %[[RATE:.*]] = train.learning_rate
// CHECK: train.adamw @bw {{.*}} rate %[[RATE]] {{.*}} weight_decay = 0.000000e+00
// CHECK: %[[QUARTER:.*]] = train.mul %[[RATE]]
// CHECK: train.adamw @w {{.*}} rate %[[QUARTER]] {{.*}} weight_decay = 5.000000e-01
// CHECK: train.adamw @other {{.*}} rate %[[RATE]] {{.*}} weight_decay = 5.000000e-01
// CHECK: train.store %[[RATE]] into @lr
// UNUSED: error: deepstatic.parameter_groups: "w$" matches no trained parameter that no group before it has
// REGEX: error: deepstatic.parameter_groups: "(" is no regular expression

train.variable parameter @bw : tensor<2xf32> from #train.fill<0.0> {trainable}
train.variable gradient @"bw::gradient" of @bw : tensor<2xf32>
train.variable parameter @w : tensor<3xf32> from #train.fill<0.0> {trainable}
train.variable gradient @"w::gradient" of @w : tensor<3xf32>
train.variable parameter @other : tensor<3xf32> from #train.fill<0.0> {trainable}
train.variable gradient @"other::gradient" of @other : tensor<3xf32>
train.variable metric @loss : tensor<f32>
func.func @microbatch() {
  return
}
