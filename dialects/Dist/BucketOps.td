//===- BucketOps.td - variables end to end, and tensors in them -----------===//
#ifndef DS_DIST_BUCKET_OPS_TD
#define DS_DIST_BUCKET_OPS_TD

include "dialects/Dist/DistDialect.td"
include "dialects/Train/TrainInterfaces.td"

def Dist_BucketOp : Dist_Op<"bucket", [Symbol, DeclareOpInterfaceMethods<StateOpInterface>,
                                       DeclareOpInterfaceMethods<SymbolUserOpInterface>]> {
  let summary = "variables laid end to end, in equal slices over an axis";
  let description = [{
    The rank at coordinate c of the n ranks of `axis` owns elements [c * E / n, (c + 1) * E / n) of the E of `type`,
    whatever variables they belong to; what lies between and after the members is padding and stays zero. By its `sharding` a bucket
    is replicated, every rank has the whole, or sharded, a rank has its slice alone. An op over state that names a bucket acts on
    this rank's slice; one that names a member of a replicated bucket acts on the member where it lies.

    ```mlir
    dist.bucket @zero.0 on @mesh axis "data" : tensor<4096xf32> slices tensor<2048xf32> sharding <replicated> members [@w, @b] at [0, 3072]
    ```

    **Constraints**
    - (bucket_c1) `type` and `slice` are flat and of one element type; the axis size times the slice is the whole.
    - (bucket_c2) members are state of the element type, as many as offsets, ascending, apart, within the bucket.
    - (bucket_c3) offsets are multiples of 1024, so that no block of the gradient norm straddles two members; the slice is one of
      64, so that no part of a block, by which sums of squares are made, straddles two ranks.
    - (bucket_c4) it is replicated, or sharded by `axis` alone, along dimension 0.
  }];
  let arguments = (ins SymbolNameAttr:$sym_name, FlatSymbolRefAttr:$mesh, StrAttr:$axis,  // bucket_c1
                       TypeAttrOf<AnyRankedTensor>:$type, TypeAttrOf<AnyRankedTensor>:$slice, // bucket_c1, bucket_c3
                       Dist_Sharding:$sharding,                                               // bucket_c4
                       FlatSymbolRefArrayAttr:$members, DenseI64ArrayAttr:$offsets);          // bucket_c2
  let assemblyFormat = [{
    $sym_name `on` $mesh `axis` $axis `:` $type `slices` $slice `sharding` $sharding `members` $members `at` $offsets attr-dict
  }];
  let extraClassDeclaration = [{
    ::mlir::RankedTensorType getWholeType() { return ::mlir::cast<::mlir::RankedTensorType>(getType()); }
    ::mlir::RankedTensorType getSliceType() { return ::mlir::cast<::mlir::RankedTensorType>(getSlice()); }
    bool isSharded() { return !getSharding().isReplicated(); }
    /// Blocks of the gradient norm, and their smallest parts, in elements.
    static constexpr int64_t block = 1024, smallestPart = 64;
    /// The largest part of a block that never straddles two ranks.
    int64_t getPart();
    /// The slice of each of `ranks` ranks where members end at `elements`: of whole blocks, or of smaller parts where padding would
    /// be more than one in 256.
    static int64_t sliceElements(int64_t elements, int64_t ranks);
  }];
}

def Dist_BucketReads : Resource<"::ds::dist::ValueResource">;

def Dist_ReadWholeOp : Dist_Op<"read_whole", [DeclareOpInterfaceMethods<SymbolUserOpInterface>,
                                              MemoryEffects<[MemRead<Dist_BucketReads>]>]> {
  let summary = "all of a bucket, as it lies";
  let description = [{
    ```mlir
    %g = dist.read_whole @"zero.0::gradient" : tensor<4096xf32>
    ```

    **Constraints**
    - (read_whole_c1) `bucket` names a replicated dist.bucket, and the result is its type.
  }];
  let arguments = (ins FlatSymbolRefAttr:$bucket);
  let results = (outs Dist_Static:$result);
  let assemblyFormat = "$bucket attr-dict `:` type($result)";
}

def Dist_ViewOp : Dist_Op<"view", [Pure]> {
  let summary = "a tensor that lies in a flat one";
  let description = [{
    ```mlir
    %w = dist.view %whole at 1024 : tensor<4096xf32> -> tensor<32x64xf32>
    ```

    **Constraints**
    - (view_c1) `input` is flat and of the result's element type.
    - (view_c2) the result's elements, from `offset` on, lie within it.
  }];
  let arguments = (ins Dist_Static:$input, I64Attr:$offset);
  let results = (outs Dist_Static:$result);
  let assemblyFormat = "$input `at` $offset attr-dict `:` type($input) `->` type($result)";
  let hasVerifier = 1;
}

def Dist_PackOp : Dist_Op<"pack", [Pure]> {
  let summary = "tensors laid into a flat one, zeros between";
  let description = [{
    Costs no copy: who computes an input writes it where it is to lie.

    ```mlir
    %flat = dist.pack %dw, %db at [0, 3072] : (tensor<48x64xf32>, tensor<64xf32>) -> tensor<4096xf32>
    ```

    **Constraints**
    - (pack_c1) the result is flat; inputs have its element type and are as many as offsets.
    - (pack_c2) inputs are ascending, apart, and within the result.
  }];
  let arguments = (ins Variadic<Dist_Static>:$inputs, DenseI64ArrayAttr:$offsets);
  let results = (outs Dist_Static:$result);
  let assemblyFormat = "$inputs `at` $offsets attr-dict `:` functional-type(operands, results)";
  let hasVerifier = 1;
}

#endif // DS_DIST_BUCKET_OPS_TD
