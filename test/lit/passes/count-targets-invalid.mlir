// RUN: ds-opt %s --ds-count-targets --split-input-file --verify-diagnostics

// expected-error @+1 {{needs a function @forward of one block that returns the loss}}
module {
}

// -----

// expected-error @+1 {{the model's loss (total) is not one mean cross entropy of labels, without weights and nothing added, which deepstatic.loss_normalization "tokens" needs; leave it at "microbatch"}}
func.func @forward(%logits: tensor<4x8xf32>, %labels: tensor<4xi64>, %more: tensor<f32>) -> tensor<f32> {
  %loss, %lse = train.cross_entropy mean %logits, %labels ignore -100 : (tensor<4x8xf32>, tensor<4xi64>) -> (tensor<f32>, tensor<4xf32>)
  %sum = train.add %loss, %more : (tensor<f32>, tensor<f32>) -> tensor<f32> loc("total")
  return %sum : tensor<f32>
}

// -----

// A sum has no mean to take apart.
// expected-error @+1 {{the model's loss is not one mean cross entropy of labels}}
func.func @forward(%logits: tensor<4x8xf32>, %labels: tensor<4xi64>) -> tensor<f32> {
  %loss, %lse = train.cross_entropy sum %logits, %labels ignore -100 : (tensor<4x8xf32>, tensor<4xi64>) -> (tensor<f32>, tensor<4xf32>)
  return %loss : tensor<f32>
}

// -----

// A parameter of the metric's name.
// expected-error @+1 {{@targets has a name that the training step needs for itself; rename it}}
train.variable parameter @targets : tensor<4x8xf32> from #train.fill<0.5> {trainable}
func.func @forward(%labels: tensor<4xi64>) -> tensor<f32> {
  %w = train.read @targets : tensor<4x8xf32>
  %loss, %lse = train.cross_entropy mean %w, %labels ignore -100 : (tensor<4x8xf32>, tensor<4xi64>) -> (tensor<f32>, tensor<4xf32>)
  return %loss : tensor<f32>
}
