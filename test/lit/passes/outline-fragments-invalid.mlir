// RUN: ds-opt %s --ds-declare-mesh --ds-outline-fragments --split-input-file --verify-diagnostics

// expected-error @+1 {{needs @microbatch, @update and @evaluate; see ds-verify-train-form}}
module {
  func.func @microbatch() {
    return
  }
}

// -----

// expected-error @+1 {{must have one block and @microbatch's arguments, or none; see ds-verify-train-form}}
func.func private @microbatch()
func.func @update() {
  return
}
func.func @evaluate() {
  return
}

// -----

// expected-note @below {{@microbatch stands here}}
func.func @microbatch() {
  return
}
func.func @update() {
  return
}
// expected-error @+1 {{must have one block and @microbatch's arguments, or none; see ds-verify-train-form}}
func.func @evaluate(%x: tensor<f32>) {
  return
}
