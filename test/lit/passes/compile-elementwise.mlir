// RUN: ds-opt %s --split-input-file --ds-compile-elementwise="isa=sm_90a alignment=256" | FileCheck %s
// RUN: ds-opt %s --split-input-file --ds-compile-elementwise="isa=sm_90a alignment=256" > %t
// RUN: ds-opt %s --split-input-file --ds-compile-elementwise="isa=sm_90a alignment=256" | diff - %t

// Tests that equal calls share a code, in the types, shape and constants of the call, and another shape has its own.
// CHECK:         plan.code @[[FIRST:elementwise_[0-9a-f]+]] blocks 1 threads 256
// CHECK-SAME:      .target sm_90\0A
// CHECK-SAME:      .visible .entry [[FIRST]](
// CHECK-SAME:      ld.global.v4.b32
// CHECK-SAME:      add.rn.f32
// CHECK:         plan.code @[[SECOND:elementwise_[0-9a-f]+]] blocks 2 threads 256
// CHECK-NOT:     plan.code
// CHECK-LABEL: plan.role @main
// CHECK:         plan.kernel "elementwise" code @[[FIRST]] {
// CHECK:         plan.kernel "elementwise" code @[[FIRST]] {
// CHECK:         plan.kernel "elementwise" code @[[SECOND]] {
plan.role @main ranks [0, 0] {
  plan.arena @device space device bytes 16384 peak 16384
  plan.queue @compute kind compute
  %a = plan.buffer "a" in @device bytes 8192 scope call category activations slots 1 at 0
  %b = plan.buffer "b" in @device bytes 8192 scope call category activations slots 1 at 8192
  plan.routine @forward phase forward stage 0 {
    plan.kernel "elementwise" {constants = array<f64>, program = array<i64: 10, 7, 0, 0, -1>, results = array<i64: 1>} (%a, %b) :
        [tensor<64xf32>, tensor<64xf32>] access [1, 2] at [0, 0] on @compute
    plan.kernel "elementwise" {constants = array<f64>, program = array<i64: 10, 7, 0, 0, -1>, results = array<i64: 1>} (%b, %a) :
        [tensor<64xf32>, tensor<64xf32>] access [1, 2] at [1024, 512] on @compute
    plan.kernel "elementwise" {constants = array<f64>, program = array<i64: 10, 7, 0, 0, -1>, results = array<i64: 1>} (%a, %b) :
        [tensor<2048xf32>, tensor<2048xf32>] access [1, 2] at [0, 0] on @compute
  }
}

// -----

// Tests that an operand which begins at 4 bytes, in one of its slots or on another rank, is read 4 bytes at once.
// CHECK:         plan.code @[[SLOT:elementwise_[0-9a-f]+]]
// CHECK-NOT:       ld.global.v4
// CHECK-SAME:      st.global.v4.b32
// CHECK:         plan.code @[[RANK:elementwise_[0-9a-f]+]]
// CHECK-SAME:      ld.global.v4.b32
// CHECK-NOT:       st.global.v4
// CHECK-LABEL: plan.role @offsets
// CHECK:         code @[[SLOT]] {
// CHECK:         code @[[RANK]] {
plan.communicator @ranks axes [0]
plan.role @offsets ranks [0, 1] {
  plan.arena @device space device bytes 16384 peak 16384
  plan.queue @compute kind compute
  %slots = plan.buffer "slots" in @device bytes 256 scope slot category activations slots 2 at 0 then [1028]
  %b = plan.buffer "b" in @device bytes 8192 scope call category activations slots 1 at 8192
  plan.routine @forward phase forward stage 0 {
    plan.kernel "elementwise" {constants = array<f64>, program = array<i64: 50, 7, 0, -1, -1>, results = array<i64: 1>} (%slots, %b) :
        [tensor<64xf32>, tensor<64xf32>] access [1, 2] at [0, 0] on @compute
    plan.kernel "elementwise" {constants = array<f64>, program = array<i64: 50, 7, 0, -1, -1>, results = array<i64: 1>} (%b, %b) :
        [tensor<64xf32>, tensor<64xf32>] access [1, 2] at [0, 1024] stride [0, 4] over @ranks on @compute
  }
}

// -----

// Tests that integers, kernels of the host and other kernels have no code.
// CHECK-LABEL: plan.role @others
// CHECK-NOT:     code @
plan.role @others ranks [0, 0] {
  plan.arena @device space device bytes 1024 peak 1024
  plan.arena @host space host bytes 1024 peak 1024
  plan.queue @compute kind compute
  plan.queue @processors kind host
  %a = plan.buffer "a" in @device bytes 1024 scope call category activations slots 1 at 0
  %h = plan.buffer "h" in @host bytes 1024 scope call category activations slots 1 at 0
  plan.routine @forward phase forward stage 0 {
    plan.kernel "elementwise" {constants = array<f64>, program = array<i64: 50, 6, 0, -1, -1>, results = array<i64: 1>} (%a, %a) :
        [tensor<8xi64>, tensor<8xi64>] access [1, 2] at [0, 512] on @compute
    plan.kernel "elementwise" {constants = array<f64>, program = array<i64: 50, 7, 0, -1, -1>, results = array<i64: 1>} (%h, %h) :
        [tensor<8xf32>, tensor<8xf32>] access [1, 2] at [0, 512] on @processors
    plan.kernel "transpose" {perm = array<i64: 0>} (%a, %a) :
        [tensor<8xf32>, tensor<8xf32>] access [1, 2] at [0, 512] on @compute
  }
}
