//===- DistOps.td - mesh, fragments, programs -----------------------------===//
#ifndef DS_DIST_OPS_TD
#define DS_DIST_OPS_TD

include "dialects/Dist/BucketOps.td"
include "dialects/Dist/CollectiveOps.td"
include "dialects/Dist/DistDialect.td"
include "dialects/Dist/KernelOps.td"
include "dialects/Dist/PipelineOps.td"
include "dialects/Dist/TransferOps.td"

def Dist_Values : Resource<"::ds::dist::ValueResource">;

def Dist_MeshOp : Dist_Op<"mesh", [Symbol]> {
  let summary = "the ranks as a grid with named axes";
  let description = [{
    Row-major, the last axis fastest; in the mesh below rank = ((pipe * D + data) * E + expert) * T + tensor, of which E and T are 1
    as yet. Cf. torch.distributed.DeviceMesh.

    ```mlir
    dist.mesh @mesh ["pipe", "data", "expert", "tensor"] [2, 4, 1, 1]
    ```

    **Constraints**
    - (mesh_c1) as many names as sizes, no name twice.
    - (mesh_c2) every size is at least 1.
  }];
  let arguments = (ins SymbolNameAttr:$sym_name, StrArrayAttr:$axes, DenseI64ArrayAttr:$sizes);
  let assemblyFormat = "$sym_name $axes $sizes attr-dict";
  let hasVerifier = 1;
}

def Dist_ValueOp : Dist_Op<"value", [Symbol, DeclareOpInterfaceMethods<SymbolUserOpInterface>]> {
  let summary = "what passes from one fragment to a later one of the same micro-batch";
  let description = [{
    `input` names the graph input that `dist.feed` writes into it. `of` names the bucket that it is the whole of, gathered.
    What is `for_step`, a gathered or rounded parameter, is stored once, and loaded by every later micro-batch of the step.

    ```mlir
    dist.value @"h.0/add" : tensor<4x128x64xf32>
    dist.value @input_ids : tensor<4x128xi64> input "input_ids"
    dist.value @"zero.0::whole" : tensor<8192xf32> of @zero.0 for_step
    dist.value @"h.0/mul" : tensor<4x128x32xf32> sharding <sharded "tensor" dim 2>
    dist.value @"h.1/add" : tensor<4x128x64xf32> in host
    ```

    Outside of device memory, in the space that `in` names, only transfers reach it. `sharding` says what the type, a rank's, is of the whole; nothing said: not known to be the same anywhere else.

    **Constraints**
    - (value_c1) the type is a static tensor.
    - (value_c2) `of` names a dist.bucket whose whole has the type's elements, all floats.
    - (value_c3) `sharding` names axes of the mesh and dimensions of the type.
    - (value_c4) a graph input, and the whole of a bucket, lies in device memory.
  }];
  let arguments = (ins SymbolNameAttr:$sym_name, TypeAttrOf<AnyRankedTensor>:$type, OptionalAttr<StrAttr>:$input,
                       OptionalAttr<FlatSymbolRefAttr>:$bucket, UnitAttr:$for_step,
                       OptionalAttr<Dist_Sharding>:$sharding,
                       OptionalAttr<Dist_MemorySpace>:$elsewhere);
  let assemblyFormat = [{
    $sym_name `:` $type (`input` $input^)? (`of` $bucket^)? (`for_step` $for_step^)? (`sharding` $sharding^)?
    (`in` $elsewhere^)? attr-dict
  }];
  let builders = [OpBuilder<(ins "::llvm::StringRef":$name, "::mlir::RankedTensorType":$type,
                                 CArg<"::mlir::StringAttr", "{}">:$input), [{
    build($_builder, $_state, $_builder.getStringAttr(name), ::mlir::TypeAttr::get(type), input, /*bucket=*/nullptr,
          /*for_step=*/nullptr, /*sharding=*/nullptr, /*elsewhere=*/nullptr);
  }]>];
  let extraClassDeclaration = [{
    MemorySpace getSpace() { return getElsewhere().value_or(MemorySpace::Device); }
  }];
  let hasVerifier = 1;
}

def Dist_FragmentOp : Dist_Op<"fragment", [Symbol, IsolatedFromAbove, NoTerminator, SingleBlock,
                                           DeclareOpInterfaceMethods<SymbolUserOpInterface>]> {
  let summary = "ops that run together, once per call";
  let description = [{
    Its body holds train ops, which `ds-select-kernels` makes `dist.kernel`, and `dist.load`, `dist.store`, `dist.feed`. What it
    is for stands in attributes; its name is for people.

    ```mlir
    dist.fragment @"receive::backward::0" phase receive stage 0 for @"backward::0" {
      dist.receive [@"h.0/add::grad"] on @"backward::1-0"
    }
    dist.fragment @"backward::0" phase backward stage 0 {
      %x = dist.load @"h.0/add::grad" : tensor<4x64xf32>
      ...
    }
    dist.fragment @"update::0" phase update pipe 0 {
      ...
    }
    ```

    | phase | runs |
    |---|---|
    | `feed` | graph inputs of a micro-batch are written, ahead of use |
    | `receive` | messages are received, ahead of the fragment `for` which they are |
    | `gather` | parameters are made whole for a step |
    | `forward`, `backward` | the two passes of a micro-batch |
    | `weight` | gradients of parameters, where the schedule delays them |
    | `update` | the optimizer, once a step |
    | `metric` | what another rank has measured is stored |
    | `evaluate` | the forward of an evaluation |

    **Constraints**
    - (fragment_c1) its body has no arguments.
    - (fragment_c2) `stage`, a stage of the pipeline, or `pipe`, a coordinate of the mesh's axis pipe, is there, and not both: an
      update and a metric serve all stages of a coordinate, other phases one stage. None is negative.
    - (fragment_c3) exactly a receive is `for` a dist.fragment, which has its stage or coordinate and is itself no receive.
  }];
  let arguments = (ins SymbolNameAttr:$sym_name, Dist_Phase:$phase,
                       OptionalAttr<I64Attr>:$stage, OptionalAttr<I64Attr>:$pipe, // fragment_c2
                       OptionalAttr<FlatSymbolRefAttr>:$ahead_of);                // fragment_c3
  let regions = (region SizedRegion<1>:$body);
  let assemblyFormat = [{
    $sym_name `phase` $phase (`stage` $stage^)? (`pipe` $pipe^)? (`for` $ahead_of^)? attr-dict-with-keyword $body
  }];
  let builders = [OpBuilder<(ins "::llvm::StringRef":$name, "Phase":$phase, "std::optional<int64_t>":$stage,
                                 "std::optional<int64_t>":$pipe, CArg<"::mlir::FlatSymbolRefAttr", "{}">:$aheadOf), [{
    const auto number = [&](std::optional<int64_t> value) {
      return value ? $_builder.getI64IntegerAttr(*value) : ::mlir::IntegerAttr();
    };
    build($_builder, $_state, $_builder.getStringAttr(name), PhaseAttr::get($_builder.getContext(), phase), number(stage),
          number(pipe), aheadOf);
  }]>];
  let hasVerifier = 1;
  let extraClassDeclaration = [{
    /// Whether fragments of a phase serve all stages of a coordinate of axis pipe.
    static bool isOfRank(Phase phase) { return phase == Phase::Update || phase == Phase::Metric; }
  }];
}

class Dist_ValueUser<string mnemonic, list<Trait> traits>
    : Dist_Op<mnemonic, !listconcat([HasParent<"FragmentOp">, DeclareOpInterfaceMethods<SymbolUserOpInterface>], traits)>;

def Dist_LoadOp : Dist_ValueUser<"load", [MemoryEffects<[MemRead<Dist_Values>]>]> {
  let summary = "read a value that an earlier fragment stored";
  let description = [{
    **Constraints**
    - (load_c1) `value` names a dist.value of the result's type.
    - (load_c2) only transfers from its space use a value that lies outside device memory.
  }];
  let arguments = (ins FlatSymbolRefAttr:$value);
  let results = (outs Dist_Static:$result);
  let assemblyFormat = "$value attr-dict `:` type($result)";
}

def Dist_StoreOp : Dist_ValueUser<"store", [MemoryEffects<[MemWrite<Dist_Values>]>]> {
  let summary = "store a tensor for a later fragment";
  let description = [{
    **Constraints**
    - (store_c1) `value` names a dist.value of the tensor's type that is no graph input.
    - (store_c2) the tensor lies in the value's memory space.
  }];
  let arguments = (ins Dist_Static:$tensor, FlatSymbolRefAttr:$value);
  let assemblyFormat = "$tensor `as` $value attr-dict `:` type($tensor)";
}

def Dist_FeedOp : Dist_ValueUser<"feed", [MemoryEffects<[MemWrite<Dist_Values>]>]> {
  let summary = "write this micro-batch's part of a graph input";
  let description = [{
    **Constraints**
    - (feed_c1) `value` names a dist.value with an input.
  }];
  let arguments = (ins FlatSymbolRefAttr:$value);
  let assemblyFormat = "$value attr-dict";
}

def Dist_ChannelOp : Dist_Op<"channel", [Symbol]> {
  let summary = "a line from one coordinate of an axis to another";
  let description = [{
    Of ranks whose coordinates differ on `axis` alone, the one at `from` sends to the one at `to`; messages arrive in the
    order in which they were sent. Cf. MPI_Send with a tag of its own, ncclSend.

    ```mlir
    dist.channel @"forward::0-1" axis "pipe" from 0 to 1
    ```

    **Constraints**
    - (channel_c1) `from` and `to` are two coordinates; that they are of an axis of the mesh is checked by `ds-verify-dist-form`.
  }];
  let arguments = (ins SymbolNameAttr:$sym_name, StrAttr:$axis, I64Attr:$from, I64Attr:$to);
  let assemblyFormat = "$sym_name `axis` $axis `from` $from `to` $to attr-dict";
  let hasVerifier = 1;
}

def Dist_SendOp : Dist_ValueUser<"send", [MemoryEffects<[MemWrite<Dist_Values>]>]> {
  let summary = "send tensors, one message";
  let description = [{
    Runs beside what follows; what it sends is stored, or state.

    ```mlir
    dist.send %x, %mask on @"forward::0-1" : tensor<4x64xf32>, tensor<4x4xf32>
    ```

    **Constraints**
    - (send_c1) `channel` names a dist.channel.
  }];
  let arguments = (ins Variadic<Dist_Static>:$tensors, FlatSymbolRefAttr:$channel);
  let assemblyFormat = "$tensors `on` $channel attr-dict `:` type($tensors)";
}

def Dist_ReceiveOp : Dist_ValueUser<"receive", [MemoryEffects<[MemWrite<Dist_Values>]>]> {
  let summary = "write the next message of a channel into values";
  let description = [{
    Called ahead of use, as a feed is. The values are those that the other end sends, in its order.

    **Constraints**
    - (receive_c1) `channel` names a dist.channel, `values` dist.values that are no graph inputs.
  }];
  let arguments = (ins FlatSymbolRefArrayAttr:$values, FlatSymbolRefAttr:$channel);
  let assemblyFormat = "$values `on` $channel attr-dict";
}

def Dist_RoleOp : Dist_Op<"role", [Symbol, SymbolTable, IsolatedFromAbove, NoTerminator, SingleBlock]> {
  let summary = "the ranks that run the same programs";
  let description = [{
    `ranks` are pairs [first, last].

    **Constraints**
    - (role_c1) the pairs are ascending and disjoint.
  }];
  let arguments = (ins SymbolNameAttr:$sym_name, DenseI64ArrayAttr:$ranks);
  let regions = (region SizedRegion<1>:$body);
  let assemblyFormat = "$sym_name `ranks` $ranks attr-dict-with-keyword $body";
  let hasVerifier = 1;
}

def Dist_ProgramOp : Dist_Op<"program", [Symbol, HasParent<"RoleOp">, NoTerminator, SingleBlock]> {
  let summary = "calls in order";
  let description = "`step` is one optimizer step, `evaluate` one micro-batch of evaluation.";
  let arguments = (ins SymbolNameAttr:$sym_name);
  let regions = (region SizedRegion<1>:$body);
  let assemblyFormat = "$sym_name attr-dict-with-keyword $body";
}

def Dist_CallOp
    : Dist_Op<"call", [HasParent<"ProgramOp">, DeclareOpInterfaceMethods<SymbolUserOpInterface>]> {
  let summary = "run a fragment for one micro-batch";
  let description = [{
    **Constraints**
    - (call_c1) `fragment` names a dist.fragment.
    - (call_c2) `microbatch` >= 0.
  }];
  let arguments = (ins FlatSymbolRefAttr:$fragment, I64Attr:$microbatch);
  let assemblyFormat = "$fragment `microbatch` $microbatch attr-dict";
}

#endif // DS_DIST_OPS_TD
