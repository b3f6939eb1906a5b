//===- DistDialect.td - where it is computed ------------------------------===//
#ifndef DS_DIST_DIALECT_TD
#define DS_DIST_DIALECT_TD

include "mlir/IR/OpBase.td"
include "mlir/IR/AttrTypeBase.td"
include "mlir/IR/EnumAttr.td"
include "mlir/IR/SymbolInterfaces.td"
include "mlir/IR/RegionKindInterface.td"
include "mlir/Interfaces/SideEffectInterfaces.td"

def Dist_Dialect : Dialect {
  let name = "dist";
  let cppNamespace = "::ds::dist";
  let summary = "where it is computed: a mesh, fragments, schedules";
  let description = [{
    Train ops placed on a mesh of ranks. A *fragment* is a piece of the step that runs once per call: feed, forward,
    backward, update. What one fragment computes for a later one of the same micro-batch is a *value*, named, because
    many micro-batches may be in flight. A *role* is the set of ranks that run the same program; a *program* is the list
    of (fragment, micro-batch) calls. Nothing is unrolled over micro-batches but the calls.

    What is shared out lies in *buckets*: variables end to end, flat, so that the rank at coordinate c of n owns the c-th of
    n equal slices and one collective reads and writes in place. Ops that name a bucket (train.read, train.adamw) act on
    this rank's slice. A collective is an op on tensors; asynchrony is a token between its start and its done.
  }];
  let useDefaultTypePrinterParser = 1;
  let useDefaultAttributePrinterParser = 1;
  let hasOperationAttrVerify = 1;
  let extraClassDeclaration = "void addShardings();";
  let usePropertiesForAttributes = 1;
}

class Dist_Op<string mnemonic, list<Trait> traits = []> : Op<Dist_Dialect, mnemonic, traits>;

def Dist_Static : StaticShapeTensorOf<[AnyType]>;

def Dist_Token : TypeDef<Dist_Dialect, "Token"> {
  let mnemonic = "token";
  let summary = "a collective under way, from its start to its done";
}

def Dist_Sharding : AttrDef<Dist_Dialect, "Sharding"> {
  let mnemonic = "sharding";
  let summary = "what a rank holds of a tensor";
  let description = [{
    The whole, unless something is said of an axis of the mesh: `sharded` by it, a rank at coordinate c of n holds the c-th of n equal
    pieces of dimension `dim`; `partial`, the tensor is the sum of what the ranks along it hold. With `runs` r the dimension is r
    equal runs end to end, and a piece the c-th of n parts of each, as ranks cut a weight that packs q, k and v. Cf. the placements
    of torch.distributed.tensor.DTensor: Replicate, Shard(dim), Partial. A train.variable with a `whole` says as attribute
    `dist.sharding` how its type is cut from it.

    ```mlir
    #dist.sharding<replicated>
    #dist.sharding<sharded "data" dim 0>
    #dist.sharding<sharded "data" dim 0, partial "tensor">
    #dist.sharding<sharded "tensor" dim 0 runs 3>
    ```

    **Constraints**
    - (sharding_c1) no axis stands twice.
    - (sharding_c2) a dimension is not negative, and has at least one run.
    - (sharding_c3) as `dist.sharding` of a train.variable it is of its whole: of axes of the mesh, `partial` by none, each sharded
      dimension's runs times the axis size a divisor of it; the type is what is left.
  }];
  let parameters = (ins ArrayRefParameter<"::ds::dist::AxisPlacement">:$placements);
  let hasCustomAssemblyFormat = 1;
  let genVerifyDecl = 1;
  let extraClassDeclaration = [{
    static ShardingAttr getReplicated(::mlir::MLIRContext *context) { return get(context, {}); }
    static ShardingAttr getSharded(::mlir::StringAttr axis, int64_t dim, int64_t runs = 1) {
      return get(axis.getContext(), {AxisPlacement{axis, dim, runs}});
    }
    bool isReplicated() const { return getPlacements().empty(); }
  }];
}

def Dist_ByRank : AttrDef<Dist_Dialect, "ByRank"> {
  let mnemonic = "by_rank";
  let summary = "numbers that each rank along an axis adds its own to";
  let description = [{
    The rank at coordinate c of `axis` has `values[i] + c * steps[i]`: where its part of a tensor begins, as an argument of a kernel.

    ```mlir
    #dist.by_rank<[0, 0], "tensor", [0, 128]>
    ```

    **Constraints**
    - (by_rank_c1) there are as many steps as values.
  }];
  let parameters = (ins ArrayRefParameter<"int64_t">:$values, "::mlir::StringAttr":$axis, ArrayRefParameter<"int64_t">:$steps);
  let assemblyFormat = "`<` `[` $values `]` `,` $axis `,` `[` $steps `]` `>`";
  let genVerifyDecl = 1; // by_rank_c1
}

/// Numbers of plan.proto's Routine.Phase; a plan has `begin` (1), too.
def Dist_Phase : I32EnumAttr<"Phase", "the part of a step that a fragment runs", [
    I32EnumAttrCase<"Feed", 2, "feed">, I32EnumAttrCase<"Receive", 3, "receive">, I32EnumAttrCase<"Gather", 4, "gather">,
    I32EnumAttrCase<"Forward", 5, "forward">, I32EnumAttrCase<"Backward", 6, "backward">,
    I32EnumAttrCase<"Weight", 7, "weight">, I32EnumAttrCase<"Update", 8, "update">,
    I32EnumAttrCase<"Metric", 9, "metric">, I32EnumAttrCase<"Evaluate", 10, "evaluate">]> {
  let cppNamespace = "::ds::dist";
}
/// Numbers of plan.proto's CollectiveCommand.Kind.
def Dist_CollectiveKind : I32EnumAttr<"CollectiveKind", "what a collective does", [
    I32EnumAttrCase<"AllGather", 1, "all_gather">, I32EnumAttrCase<"ReduceScatter", 2, "reduce_scatter">,
    I32EnumAttrCase<"AllReduce", 3, "all_reduce">, I32EnumAttrCase<"Broadcast", 4, "broadcast">,
    I32EnumAttrCase<"AllToAll", 5, "all_to_all">]> {
  let cppNamespace = "::ds::dist";
}

#endif // DS_DIST_DIALECT_TD
