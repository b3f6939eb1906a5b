//===- Passes.td - what one kernel does at once -------------------------===//
#ifndef DS_PASSES_FUSION_TD
#define DS_PASSES_FUSION_TD

include "compiler/passes/base/PassBase.td"

def FoldTransposes : DsPass<"ds-fold-transposes"> {
  let summary = "let products read a transposed operand in place";
  let description = [{
    ```mlir
    %t = train.transpose %w by [1, 0] : (tensor<4x8xf32>) -> tensor<8x4xf32>
    %y = train.matmul %x, %t : (tensor<2x8xf32>, tensor<8x4xf32>) -> tensor<2x4xf32>
    // becomes
    %y = train.matmul %x, %w transposed : ...
    ```
    A permutation that does more than swap the last two dimensions is split so that the remaining transpose moves whole
    rows. Must precede `ds-differentiate`, so that gradients are built on the weights as they are stored.
  }];
}

def ConcatPads : DsPass<"ds-concat-pads"> {
  let summary = "a sum of zero-padded parts is their concatenation";
  let description = [{
    ```mlir
    %0 = train.pad %q low [0, 0] high [0, 8] interior [0, 0] with 0.0 : (tensor<2x4xf32>) -> tensor<2x12xf32>
    %1 = train.pad %kv low [0, 4] high [0, 0] interior [0, 0] with 0.0 : (tensor<2x8xf32>) -> tensor<2x12xf32>
    %g = train.add %0, %1 : (tensor<2x12xf32>, tensor<2x12xf32>) -> tensor<2x12xf32>
    // becomes
    %g = train.concat %q, %kv along 1 : ...
    ```
    The gradient of a tensor that was split, as attention splits its projection. Only where the parts tile the sum along one
    dimension and nothing else reads them. An element -0 stays -0; the sum would make it 0.
  }];
}

def RegroupAttention : DsPass<"ds-regroup-attention", ["::ds::train::TrainDialect"]> {
  let summary = "find attention in what exporters write";
  let description = [{
    ```mlir
    %scale = train.constant dense<0.25> : tensor<f32>
    %s = train.matmul %q, %k transposed : (tensor<2x4x8x16xf32>, tensor<2x4x8x16xf32>) -> tensor<2x4x8x8xf32>
    %t = train.mul %s, %scale : (tensor<2x4x8x8xf32>, tensor<f32>) -> tensor<2x4x8x8xf32>
    %u = train.add %t, %mask : (tensor<2x4x8x8xf32>, tensor<8x8xf32>) -> tensor<2x4x8x8xf32>
    %p = train.softmax %u along 3 : (tensor<2x4x8x8xf32>) -> tensor<2x4x8x8xf32>
    %y = train.matmul %p, %v : (tensor<2x4x8x8xf32>, tensor<2x4x8x16xf32>) -> tensor<2x4x8x16xf32>
    // becomes
    %y, %lse = train.attention %q, %k, %v mask %mask scale 2.500000e-01 ...
    ```
    Scales before and after the product, additive and boolean masks, a zero in place of NaN after the softmax and key and
    value heads that are repeated for grouped queries all become part of the op. Left as they are: probabilities that
    something else reads, that a dropout changes, and masks that a trainable parameter reaches. A constant mask that hides
    just the later keys becomes `causal`. Where a row hides every key by minus infinity the op yields zeros, not NaN. Sums
    are taken in another order. Must precede `ds-differentiate`; switch off to compare.
  }];
}

def FoldHeadTransposes : DsPass<"ds-fold-head-transposes"> {
  let summary = "let attention read heads where projections write them";
  let description = [{
    ```mlir
    func.func @forward(%x: tensor<2x16x4x8xf32>, %y: tensor<2x16x4x8xf32>, %z: tensor<2x16x4x8xf32>) -> tensor<2x16x4x8xf32> {
      %q = train.transpose %x by [0, 2, 1, 3] : (tensor<2x16x4x8xf32>) -> tensor<2x4x16x8xf32>
      %k = train.transpose %y by [0, 2, 1, 3] : (tensor<2x16x4x8xf32>) -> tensor<2x4x16x8xf32>
      %v = train.transpose %z by [0, 2, 1, 3] : (tensor<2x16x4x8xf32>) -> tensor<2x4x16x8xf32>
      %o, %lse = train.attention %q, %k, %v scale 1.0 : (tensor<2x4x16x8xf32>, tensor<2x4x16x8xf32>, tensor<2x4x16x8xf32>) -> (tensor<2x4x16x8xf32>, tensor<2x4x16xf32>)
      %t = train.transpose %o by [0, 2, 1, 3] : (tensor<2x4x16x8xf32>) -> tensor<2x16x4x8xf32>
      return %t : tensor<2x16x4x8xf32>
    }
    // becomes
    func.func @forward(%x: tensor<2x16x4x8xf32>, %y: tensor<2x16x4x8xf32>, %z: tensor<2x16x4x8xf32>) -> tensor<2x16x4x8xf32> {
      %o, %lse = train.attention %x, %y, %z scale 1.000000e+00 bshd : (tensor<2x16x4x8xf32>, tensor<2x16x4x8xf32>, tensor<2x16x4x8xf32>) -> (tensor<2x16x4x8xf32>, tensor<2x4x16xf32>)
      return %o : tensor<2x16x4x8xf32>
    }
    ```
    Where query, key, value and all that reads the result are such transposes. Rotary embeddings stand between, so with them nothing is
    folded. For GPUs, where each transpose is a launch. Must precede `ds-differentiate`, so that gradients have the layout, too.
  }];
}

def PackHeads : DsPass<"ds-pack-heads"> {
  let summary = "let attention read query, key and value in the tensor that one product wrote";
  let description = [{
    ```mlir
    func.func @forward(%x: tensor<2x16x96xf32>) -> tensor<2x16x4x8xf32> {
      %0 = train.slice %x from [0, 0, 0] size [2, 16, 32] step [1, 1, 1] : (tensor<2x16x96xf32>) -> tensor<2x16x32xf32>
      %1 = train.slice %x from [0, 0, 32] size [2, 16, 32] step [1, 1, 1] : (tensor<2x16x96xf32>) -> tensor<2x16x32xf32>
      %2 = train.slice %x from [0, 0, 64] size [2, 16, 32] step [1, 1, 1] : (tensor<2x16x96xf32>) -> tensor<2x16x32xf32>
      %q = train.reshape %0 to [2, 16, 4, 8] : (tensor<2x16x32xf32>) -> tensor<2x16x4x8xf32>
      %k = train.reshape %1 to [2, 16, 4, 8] : (tensor<2x16x32xf32>) -> tensor<2x16x4x8xf32>
      %v = train.reshape %2 to [2, 16, 4, 8] : (tensor<2x16x32xf32>) -> tensor<2x16x4x8xf32>
      %o, %lse = train.attention %q, %k, %v scale 1.0 causal bshd : (tensor<2x16x4x8xf32>, tensor<2x16x4x8xf32>, tensor<2x16x4x8xf32>) -> (tensor<2x16x4x8xf32>, tensor<2x4x16xf32>)
      return %o : tensor<2x16x4x8xf32>
    }
    // becomes
    func.func @forward(%x: tensor<2x16x96xf32>) -> tensor<2x16x4x8xf32> {
      %qkv = train.reshape %x to [2, 16, 12, 8] : (tensor<2x16x96xf32>) -> tensor<2x16x12x8xf32>
      %o, %lse = train.packed_attention %qkv heads 4 scale 1.000000e+00 causal : (tensor<2x16x12x8xf32>) -> (tensor<2x16x4x8xf32>, tensor<2x4x16xf32>)
      return %o : tensor<2x16x4x8xf32>
    }
    ```
    Where query, key and value stand side by side in this order and are all of the tensor. A slice that something else reads stays for
    that. The gradient is one tensor, too. For GPUs, as `ds-fold-head-transposes`, which it must follow; must precede
    `ds-differentiate`.
  }];
}

def RegroupRmsNorm : DsPass<"ds-regroup-rms-norm", ["::ds::train::TrainDialect"]> {
  let summary = "find root mean square norms in what exporters write";
  let description = [{
    ```mlir
    %two = train.constant dense<2.0> : tensor<f32>
    %epsilon = train.constant dense<1.0e-05> : tensor<f32>
    %s = train.pow %x, %two : (tensor<4x64x8xf32>, tensor<f32>) -> tensor<4x64x8xf32>
    %m = train.reduce_mean %s over [2] : (tensor<4x64x8xf32>) -> tensor<4x64xf32>
    %k = train.reshape %m to [4, 64, 1] : (tensor<4x64xf32>) -> tensor<4x64x1xf32>
    %a = train.add %k, %epsilon : (tensor<4x64x1xf32>, tensor<f32>) -> tensor<4x64x1xf32>
    %r = train.rsqrt %a : (tensor<4x64x1xf32>) -> tensor<4x64x1xf32>
    %n = train.mul %x, %r : (tensor<4x64x8xf32>, tensor<4x64x1xf32>) -> tensor<4x64x8xf32>
    %y = train.mul %scale, %n : (tensor<8xf32>, tensor<4x64x8xf32>) -> tensor<4x64x8xf32>
    // becomes
    %y, %rrms = train.rms_norm %x, %scale epsilon ...
    ```
    The square may be a product, the reciprocal root sqrt and reciprocal or a division. Left as they are: norms over other
    dimensions than the last, a scale that is no vector of it, and values on the way that something else reads. Sums are taken
    in another order. Must precede `ds-differentiate`; switch off to compare.
  }];
}

def RegroupGelu : DsPass<"ds-regroup-gelu", ["::ds::train::TrainDialect"]> {
  let summary = "find GELU by tanh in what exporters write";
  let description = [{
    ```mlir
    %three = train.constant dense<3.0> : tensor<f32>
    %c = train.constant dense<0.044715> : tensor<f32>
    %r = train.constant dense<0.797884583> : tensor<f32>
    %one = train.constant dense<1.0> : tensor<f32>
    %half = train.constant dense<0.5> : tensor<f32>
    %0 = train.pow %x, %three : (tensor<4x8xf32>, tensor<f32>) -> tensor<4x8xf32>
    %1 = train.mul %0, %c : (tensor<4x8xf32>, tensor<f32>) -> tensor<4x8xf32>
    %2 = train.add %x, %1 : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x8xf32>
    %3 = train.mul %2, %r : (tensor<4x8xf32>, tensor<f32>) -> tensor<4x8xf32>
    %4 = train.tanh %3 : (tensor<4x8xf32>) -> tensor<4x8xf32>
    %5 = train.add %4, %one : (tensor<4x8xf32>, tensor<f32>) -> tensor<4x8xf32>
    %6 = train.mul %x, %half : (tensor<4x8xf32>, tensor<f32>) -> tensor<4x8xf32>
    %y = train.mul %6, %5 : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x8xf32>
    // becomes
    %y = train.gelu_tanh %x : (tensor<4x8xf32>) -> tensor<4x8xf32>
    ```
    The factors of each product may stand in any order, and powers may be products. For GPUs, whose products take it along
    (`ds-fuse-gelu`). GELU by erf stays as it is: no library has it. Rounds elsewhere. Must precede `ds-differentiate`; switch off to compare.
  }];
}

def PadVocabulary : DsPass<"ds-pad-vocabulary", ["::ds::train::TrainDialect"]> {
  let summary = "give logits rows that a GPU's products can take";
  let description = [{
    ```mlir
    func.func @forward(%x: tensor<4x8xf32>, %w: tensor<50257x8xf32>, %y: tensor<4xi64>) -> tensor<f32> {
      %l = train.matmul %x, %w transposed : (tensor<4x8xf32>, tensor<50257x8xf32>) -> tensor<4x50257xf32>
      %loss, %lse = train.cross_entropy mean %l, %y ignore -100 : (tensor<4x50257xf32>, tensor<4xi64>) -> (tensor<f32>, tensor<4xf32>)
      return %loss : tensor<f32>
    }
    // becomes
    func.func @forward(%x: tensor<4x8xf32>, %w: tensor<50257x8xf32>, %y: tensor<4xi64>) -> tensor<f32> {
      %p = train.pad %w low [0, 0] high [47, 0] interior [0, 0] with 0.000000e+00 : (tensor<50257x8xf32>) -> tensor<50304x8xf32>
      %l = train.matmul %x, %p transposed : (tensor<4x8xf32>, tensor<50304x8xf32>) -> tensor<4x50304xf32>
      %loss, %lse = train.cross_entropy mean %l, %y ignore -100 classes 50257 : (tensor<4x50304xf32>, tensor<4xi64>) -> (tensor<f32>, tensor<4xf32>)
      return %loss : tensor<f32>
    }
    ```
    To a multiple of 64, where the number of classes is no multiple of 8 and nothing but one loss reads the logits. The parameter keeps its
    shape: a file of weights knows nothing of it. For GPUs, whose products of 16 bits want rows at multiples of 16 bytes. Must precede
    `ds-differentiate`.
  }];
}

def FuseBias : DsPass<"ds-fuse-bias"> {
  let summary = "let a product add its bias";
  let description = [{
    ```mlir
    %0 = train.matmul %x, %w : (tensor<2x8xf32>, tensor<8x4xf32>) -> tensor<2x4xf32>
    %y = train.add %0, %b : (tensor<2x4xf32>, tensor<4xf32>) -> tensor<2x4xf32>
    // becomes
    %y = train.matmul %x, %w bias %b : ...
    ```
    Only where `%b` is a vector of the product's columns and nothing else reads the product. Must precede
    `ds-differentiate`.
  }];
}

def FuseBiasGradients : DsPass<"ds-fuse-bias-gradients", ["::ds::train::TrainDialect"]> {
  let summary = "make a bias' gradient with its weight's";
  let description = [{
    ```mlir
    func.func @backward(%x: tensor<16x8xf32>, %dy: tensor<16x4xf32>) -> (tensor<4xf32>, tensor<8x4xf32>) {
      %b = train.reduce_sum %dy over [0] : (tensor<16x4xf32>) -> tensor<4xf32>
      %w = train.matmul %x transposed, %dy : (tensor<16x8xf32>, tensor<16x4xf32>) -> tensor<8x4xf32>
      return %b, %w : tensor<4xf32>, tensor<8x4xf32>
    }
    // becomes
    func.func @backward(%x: tensor<16x8xf32>, %dy: tensor<16x4xf32>) -> (tensor<4xf32>, tensor<8x4xf32>) {
      %w, %b = train.linear_weight_grad %dy, %x : (tensor<16x4xf32>, tensor<16x8xf32>) -> (tensor<8x4xf32>, tensor<4xf32>)
      return %b, %w : tensor<4xf32>, tensor<8x4xf32>
    }
    ```
    Where both read one dy, behind reshapes too, and both are rounded or neither is. The product reads dy once for both. For GPUs, whose
    library has it as an epilogue. Must follow `ds-differentiate`.
  }];
}

def FuseResidualGradients : DsPass<"ds-fuse-residual-gradients", ["::ds::train::TrainDialect"]> {
  let summary = "let a norm's gradient add the residual's";
  let description = [{
    ```mlir
    func.func @backward(%r: tensor<2x4xf32>, %dy: tensor<2x4xf32>, %x: tensor<2x4xf32>, %g: tensor<4xf32>, %s: tensor<2xf32>) -> tensor<2x4xf32> {
      %dx, %dg = train.rms_norm_grad %dy, %x, %g, %s : (tensor<2x4xf32>, tensor<2x4xf32>, tensor<4xf32>, tensor<2xf32>) -> (tensor<2x4xf32>, tensor<4xf32>)
      %0 = train.add %r, %dx : (tensor<2x4xf32>, tensor<2x4xf32>) -> tensor<2x4xf32>
      return %0 : tensor<2x4xf32>
    }
    // becomes
    func.func @backward(%r: tensor<2x4xf32>, %dy: tensor<2x4xf32>, %x: tensor<2x4xf32>, %g: tensor<4xf32>, %s: tensor<2xf32>) -> tensor<2x4xf32> {
      %dx, %dg = train.rms_norm_grad %dy, %x, %g, %s, %r : (tensor<2x4xf32>, tensor<2x4xf32>, tensor<4xf32>, tensor<2xf32>, tensor<2x4xf32>) -> (tensor<2x4xf32>, tensor<4xf32>)
      return %dx : tensor<2x4xf32>
    }
    ```
    The gradient of what a block reads is that of its residual plus that of its norm, which nothing else reads. One kernel makes both, with
    the same bits, and the norm's share is never in memory. For GPUs. Must follow `ds-differentiate`.
  }];
}

def FuseLossGradient : DsPass<"ds-fuse-loss-gradient", ["::ds::train::TrainDialect"]> {
  let summary = "one kernel makes a cross entropy and its gradient";
  let description = [{
    ```mlir
    %loss, %lse = train.cross_entropy mean %x, %l ignore -100 : (tensor<3x5xf32>, tensor<3xi64>) -> (tensor<f32>, tensor<3xf32>)
    train.accumulate %loss into @loss : tensor<f32>
    %seed = train.loss_gradient 1.000000e+00 : tensor<f32>
    %dx = train.cross_entropy_grad mean %x, %l, %lse, %seed ignore -100 : (tensor<3x5xf32>, tensor<3xi64>, tensor<3xf32>, tensor<f32>) -> tensor<3x5xf32>
    // becomes
    %seed = train.loss_gradient 1.000000e+00 : tensor<f32>
    %loss, %lse, %dx = train.cross_entropy_with_grad mean %x, %l, %seed ignore -100 : (tensor<3x5xf32>, tensor<3xi64>, tensor<f32>) -> (tensor<f32>, tensor<3xf32>, tensor<3x5xf32>)
    train.accumulate %loss into @loss : tensor<f32>
    ```
    With the same bits, and logits are read from memory once, not twice. It stands in the backward pass, so a schedule
    may run it long after the forward of its micro-batch: between them logits wait, as before, and the gradient may lie over them. Where the gradient depends on the
    loss both stay, as in an evaluation the loss does. For GPUs. Must follow what is computed again, and precede `ds-outline-fragments`.
  }];
}

def FuseResidualSums : DsPass<"ds-fuse-residual-sums", ["::ds::train::TrainDialect"]> {
  let summary = "let a norm add the residual in front of it";
  let description = [{
    ```mlir
    %x = train.add %a, %b : (tensor<2x4xf32>, tensor<2x4xf32>) -> tensor<2x4xf32>
    %y, %s = train.rms_norm %x, %g epsilon 1.000000e-05 : (tensor<2x4xf32>, tensor<4xf32>) -> (tensor<2x4xf32>, tensor<2xf32>)
    // becomes
    %y, %s, %x = train.rms_norm_of_sum %a, %g, %b epsilon 1.000000e-05 : (tensor<2x4xf32>, tensor<4xf32>, tensor<2x4xf32>) -> (tensor<2x4xf32>, tensor<2xf32>, tensor<2x4xf32>)
    ```
    One kernel reads both terms and writes the sum and its norm, with the same bits. Of a norm in 16 bits one term is float32, and so is the sum; it is
    written rounded, too, as the norm takes it. A sum that is part of a longer loop stays there. For GPUs; a CPU's kernels for 16 bits round at their end. Must follow what is computed again, which may be the norm without
    the sum, and `ds-fuse-elementwise`.
  }];
}

def FuseGelu : DsPass<"ds-fuse-gelu", ["::ds::train::TrainDialect"]> {
  let summary = "let a product take its GELU, or its gradient's";
  let description = [{
    ```mlir
    %p = train.matmul %x, %w : (tensor<2x4xbf16>, tensor<4x8xbf16>) -> tensor<2x8xbf16>
    %0 = train.cast %p to f32 : (tensor<2x8xbf16>) -> tensor<2x8xf32>
    %1 = train.gelu_tanh %0 : (tensor<2x8xf32>) -> tensor<2x8xf32>
    %y = train.cast %1 to bf16 : (tensor<2x8xf32>) -> tensor<2x8xbf16>
    // becomes
    %y, %p = train.matmul_gelu_tanh %x, %w : (tensor<2x4xbf16>, tensor<4x8xbf16>) -> (tensor<2x8xbf16>, tensor<2x8xbf16>)
    ```
    And of the backward pass a product times `train.gelu_tanh_slope` becomes `train.matmul_gelu_tanh_grad`.
    For GPUs since sm_90, whose products hide it (CUBLASLT_EPILOGUE_GELU_AUX_BIAS, CUBLASLT_EPILOGUE_DGELU): neither is a pass over memory of its own.
    A product whose GELU the backward computes again stays with what it was fused with. Must precede `ds-fuse-elementwise`.
  }];
}

def FuseElementwise : DsPass<"ds-fuse-elementwise"> {
  let summary = "run chains of elementwise ops as one loop";
  let description = [{
    ```mlir
    %0 = train.mul %x, %x : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    %1 = train.tanh %0 : (tensor<4xf32>) -> tensor<4xf32>
    // becomes
    %1 = train.fused %x {
    ^bb0(%a: tensor<4xf32>):
      %2 = train.mul %a, %a : ...
      %3 = train.tanh %2 : ...
      train.yield %3 : tensor<4xf32>
    } : (tensor<4xf32>) -> tensor<4xf32>
    ```
    A group has one result shape and is placed at its last op; an op joins the group of an operand when every reader
    outside comes after it, so that order and effects stay as they were. Values read outside the group become results.
    Forward and backward are never mixed. Changes no bit: each op computes what it computed before.
  }];
  let options = [
    Option<"maxOps", "max-ops", "int64_t", "24", "ops of one group">,
    Option<"maxOperands", "max-operands", "int64_t", "12", "operands and results of one group">];
}

#endif // DS_PASSES_FUSION_TD
