// RUN: ds-opt %s --ds-select-kernels='device=cuda workspace-bytes-per-thread=1024' -o /dev/null --split-input-file 2>&1 | FileCheck %s
// RUN: ds-opt %s --ds-select-kernels='device=cpu workspace-bytes-per-thread=1024' -o /dev/null --split-input-file 2>&1 | FileCheck %s --check-prefix=CPU --allow-empty

// Tests that one note names the attention that cuDNN does not take on a GPU, and why.
// CHECK: remark: kernel 'attention' will be run by our own slower kernel: a head has 12 columns, and cuDNN takes multiples of 8 up to 256; so will 1 more of attention
// CHECK-NOT: remark
// CPU-NOT: remark
dist.mesh @mesh ["data"] [1]
train.variable parameter @q : tensor<1x2x4x12xbf16> from #train.fill<0.0>
train.variable parameter @out : tensor<1x2x4x12xbf16> from #train.fill<0.0>
train.variable parameter @grad : tensor<1x2x4x12xbf16> from #train.fill<0.0>
dist.fragment @forward phase forward stage 0 {
  %q = train.read @q : tensor<1x2x4x12xbf16>
  %out, %lse = train.attention %q, %q, %q scale 1.0 causal : (tensor<1x2x4x12xbf16>, tensor<1x2x4x12xbf16>, tensor<1x2x4x12xbf16>) -> (tensor<1x2x4x12xbf16>, tensor<1x2x4xf32>)
  train.store %out into @out : tensor<1x2x4x12xbf16>
  %dq, %dk, %dv = train.attention_grad %out, %q, %q, %q of %out, %lse scale 1.0 causal : (tensor<1x2x4x12xbf16>, tensor<1x2x4x12xbf16>, tensor<1x2x4x12xbf16>, tensor<1x2x4x12xbf16>, tensor<1x2x4x12xbf16>, tensor<1x2x4xf32>) -> (tensor<1x2x4x12xbf16>, tensor<1x2x4x12xbf16>, tensor<1x2x4x12xbf16>)
  train.store %dq into @grad : tensor<1x2x4x12xbf16>
}
dist.role @main ranks [0, 0] {
  dist.program @step {
    dist.call @forward microbatch 0
  }
}

// -----

// Tests that the ordered sums of so many scores are the gradient's alone, and that what cuDNN takes has no note.
// CHECK: remark: kernel 'attention_grad' will be run by our own slower kernel: the ordered sums of the heads that share one key take 8 GiB, and cuDNN gets 4 at most
// CHECK-NOT: remark
dist.mesh @mesh ["data"] [1]
train.variable parameter @q : tensor<1x2x65536x64xbf16> from #train.fill<0.0>
train.variable parameter @out : tensor<1x2x65536x64xbf16> from #train.fill<0.0>
dist.fragment @forward phase forward stage 0 {
  %q = train.read @q : tensor<1x2x65536x64xbf16>
  %out, %lse = train.attention %q, %q, %q scale 1.0 causal : (tensor<1x2x65536x64xbf16>, tensor<1x2x65536x64xbf16>, tensor<1x2x65536x64xbf16>) -> (tensor<1x2x65536x64xbf16>, tensor<1x2x65536xf32>)
  %dq, %dk, %dv = train.attention_grad %out, %q, %q, %q of %out, %lse scale 1.0 causal : (tensor<1x2x65536x64xbf16>, tensor<1x2x65536x64xbf16>, tensor<1x2x65536x64xbf16>, tensor<1x2x65536x64xbf16>, tensor<1x2x65536x64xbf16>, tensor<1x2x65536xf32>) -> (tensor<1x2x65536x64xbf16>, tensor<1x2x65536x64xbf16>, tensor<1x2x65536x64xbf16>)
  train.store %dq into @out : tensor<1x2x65536x64xbf16>
}
dist.role @main ranks [0, 0] {
  dist.program @step {
    dist.call @forward microbatch 0
  }
}

// -----

// Tests that a gradient says where cuDNN's workspace would begin at no multiple of 16 bytes.
// CHECK: remark: kernel 'attention_grad' will be run by our own slower kernel: it is run for 1 heads of 7 queries at once, whose numbers are no multiple of 16 bytes, at which cuDNN wants what follows to begin
// CHECK-NOT: remark
dist.mesh @mesh ["data"] [1]
train.variable parameter @q : tensor<1x1x7x16xbf16> from #train.fill<0.0>
train.variable parameter @out : tensor<1x1x7x16xbf16> from #train.fill<0.0>
dist.fragment @forward phase forward stage 0 {
  %q = train.read @q : tensor<1x1x7x16xbf16>
  %out, %lse = train.attention %q, %q, %q scale 1.0 causal : (tensor<1x1x7x16xbf16>, tensor<1x1x7x16xbf16>, tensor<1x1x7x16xbf16>) -> (tensor<1x1x7x16xbf16>, tensor<1x1x7xf32>)
  %dq, %dk, %dv = train.attention_grad %out, %q, %q, %q of %out, %lse scale 1.0 causal : (tensor<1x1x7x16xbf16>, tensor<1x1x7x16xbf16>, tensor<1x1x7x16xbf16>, tensor<1x1x7x16xbf16>, tensor<1x1x7x16xbf16>, tensor<1x1x7xf32>) -> (tensor<1x1x7x16xbf16>, tensor<1x1x7x16xbf16>, tensor<1x1x7x16xbf16>)
  train.store %dq into @out : tensor<1x1x7x16xbf16>
}
dist.role @main ranks [0, 0] {
  dist.program @step {
    dist.call @forward microbatch 0
  }
}
