//===- AttentionOps.td - attention as one op ------------------------------===//
#ifndef DS_TRAIN_ATTENTION_OPS_TD
#define DS_TRAIN_ATTENTION_OPS_TD

include "dialects/Train/TrainDialect.td"
include "dialects/Train/TrainInterfaces.td"

def Train_AttentionMask : StaticShapeTensorOf<[F32, F64, BF16, F16, I1]>;

def Train_AttentionOp : Train_PureOp<"attention", [DeclareOpInterfaceMethods<DifferentiableOpInterface>]> {
  let summary = "softmax(scale * query key^T + mask) value, head by head";
  let description = [{
    `query` is [batch, heads, queries, depth], `key` [batch, groups, keys, depth], `value` [batch, groups, keys, columns];
    head h reads group h / (heads / groups), so that grouped keys are not repeated. A mask of i1 hides where it is false, one
    of floats is added; `causal` hides key j from query i where j > i. A query that sees no key yields zeros. Also yields
    `lse` [batch, heads, queries], the log of the sum of exponentials of each row, from which the gradient draws the probabilities again: they are
    never stored; for 16 bits it is f32. Dao et al. 2022; torch.nn.functional.scaled_dot_product_attention.

    With `bshd` the second and third dimension of query, key, value and result are exchanged: [batch, queries, heads, depth], as
    projections write them (FlashAttention's layout). `ds-regroup-attention` finds it in what exporters write;
    `ds-fold-head-transposes` chooses the layout.

    **Constraints**
    - (attention_c1) query, key and value have four dimensions, one batch and one element type; depth agrees between query and
      key, groups and keys between key and value.
    - (attention_c2) heads is a multiple of groups, which is positive.
    - (attention_c3) `mask` broadcasts to [batch, heads, queries, keys], and is of i1 or the element type.
    - (attention_c4) no gradient reaches `mask`.
  }];
  let arguments = (ins Train_FloatTensor:$query, Train_FloatTensor:$key, Train_FloatTensor:$value,
                       Optional<Train_AttentionMask>:$mask, F64Attr:$scale, UnitAttr:$causal, UnitAttr:$bshd);
  let results = (outs Train_FloatTensor:$result, Train_FloatTensor:$lse);
  let assemblyFormat = [{
    $query `,` $key `,` $value (`mask` $mask^)? `scale` $scale (`causal` $causal^)? (`bshd` $bshd^)? attr-dict
    `:` functional-type(operands, results)
  }];
}

def Train_AttentionGradOp : Train_PureOp<"attention_grad"> {
  let summary = "gradients of attention";
  let description = [{
    Yields the gradients of query, key and value from that of the result. `result` and `lse` are attention's own.

    **Constraints**
    - (attention_grad_c1) query, key, value and mask are those of an attention, `gradient` and `result` have its result's type,
      `lse` that of its log sums.
  }];
  let arguments = (ins Train_FloatTensor:$gradient, Train_FloatTensor:$query, Train_FloatTensor:$key,
                       Train_FloatTensor:$value, Optional<Train_AttentionMask>:$mask, Train_FloatTensor:$result,
                       Train_FloatTensor:$lse, F64Attr:$scale, UnitAttr:$causal, UnitAttr:$bshd);
  let results = (outs Train_FloatTensor:$query_gradient, Train_FloatTensor:$key_gradient,
                      Train_FloatTensor:$value_gradient);
  let assemblyFormat = [{
    $gradient `,` $query `,` $key `,` $value (`mask` $mask^)? `of` $result `,` $lse `scale` $scale (`causal` $causal^)?
    (`bshd` $bshd^)? attr-dict `:` functional-type(operands, results)
  }];
}

def Train_PackedAttentionOp : Train_PureOp<"packed_attention", [DeclareOpInterfaceMethods<DifferentiableOpInterface>]> {
  let summary = "attention of a query, key and value that lie in one tensor";
  let description = [{
    `train.attention` with `bshd`, of what one projection writes: `qkv` is [batch, rows, heads + 2 * groups, depth], in which the `heads`
    of the query come first, then the groups of the key, then those of the value. `result` is [batch, rows, heads, depth].
    `ds-pack-heads` finds it.

    **Constraints**
    - (packed_attention_c1) `qkv` has four dimensions; the third is `heads` and twice the groups, both positive.
    - (packed_attention_c2) `heads` is a multiple of groups.
    - (packed_attention_c3) `mask` broadcasts to [batch, heads, rows, rows], and is of i1 or the element type.
    - (packed_attention_c4) no gradient reaches `mask`.
  }];
  let arguments = (ins Train_FloatTensor:$qkv, Optional<Train_AttentionMask>:$mask, I64Attr:$heads, F64Attr:$scale,
                       UnitAttr:$causal);
  let results = (outs Train_FloatTensor:$result, Train_FloatTensor:$lse);
  let assemblyFormat = [{
    $qkv `heads` $heads (`mask` $mask^)? `scale` $scale (`causal` $causal^)? attr-dict
    `:` functional-type(operands, results)
  }];
}

def Train_PackedAttentionGradOp : Train_PureOp<"packed_attention_grad"> {
  let summary = "gradient of packed attention";
  let description = [{
    Yields the gradient of `qkv` from that of the result. `result` and `lse` are packed attention's own.

    **Constraints**
    - (packed_attention_grad_c1) qkv, heads and mask are those of a packed attention, `gradient` and `result` have its result's
      type, `lse` that of its log sums.
  }];
  let arguments = (ins Train_FloatTensor:$gradient, Train_FloatTensor:$qkv, Optional<Train_AttentionMask>:$mask,
                       Train_FloatTensor:$result, Train_FloatTensor:$lse, I64Attr:$heads, F64Attr:$scale,
                       UnitAttr:$causal);
  let results = (outs Train_FloatTensor:$qkv_gradient);
  let assemblyFormat = [{
    $gradient `,` $qkv `heads` $heads (`mask` $mask^)? `of` $result `,` $lse `scale` $scale (`causal` $causal^)? attr-dict
    `:` functional-type(operands, results)
  }];
}

#endif // DS_TRAIN_ATTENTION_OPS_TD
