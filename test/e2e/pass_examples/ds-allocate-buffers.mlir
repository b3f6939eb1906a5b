dist.mesh @mesh ["pipe", "data", "expert", "tensor"] [1, 1, 1, 1]
dist.value @x : tensor<4xf32> input "x"
dist.value @h : tensor<4xf32>
dist.fragment @feed phase feed stage 0 {
  dist.feed @x
}
// EXAMPLE
dist.role @main ranks [0, 0] {
  dist.program @step {
    dist.call @feed microbatch 0
    dist.call @forward microbatch 0
  }
}
