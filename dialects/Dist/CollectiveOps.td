//===- CollectiveOps.td - what ranks do together --------------------------===//
//
// Each collective has three forms: the op, which is done when it returns, and a start and a done tied by a token, between
// which other work may run. One op is one launch; its inputs are its parts, carried out in order.
//
//===----------------------------------------------------------------------===//
#ifndef DS_DIST_COLLECTIVE_OPS_TD
#define DS_DIST_COLLECTIVE_OPS_TD

include "dialects/Dist/DistDialect.td"
include "dialects/Dist/DistInterfaces.td"

defvar Dist_CollectiveConstraints = [{

    **Constraints**
    - (collective_c1) `axis` is an axis of `mesh`.
    - (collective_c2) where slices are cut or joined, `dim` is a dimension of every input, and the axis size divides it where it is
      cut; else `dim` is 0. Sums are of floats.
    - (collective_c3) there is one result an input: `dim` n times as large when gathered, n times smaller when scattered, else of
      the input's type. With `into` there is none.
    - (collective_c4) `into` names one state an input, which is of the result's type: gathers, all-reduces and broadcasts
      fill a replicated bucket or a variable, scatters this rank's slice of a bucket.
    - (collective_c5) only a sum into state accumulates.
    - (collective_c6) `sharding`, of the results, names axes of `mesh`; along `axis` results are sharded by `dim` if this is a
      reduce_scatter or an all_to_all, else the same.
}];

class Dist_Collective<string mnemonic, string kind, dag outs, list<Trait> traits>
    : Dist_Op<mnemonic, !listconcat([DeclareOpInterfaceMethods<SymbolUserOpInterface>,
                                     DeclareOpInterfaceMethods<CollectiveOpInterface, ["getKind"]>], traits)> {
  let arguments = (ins Variadic<Dist_Static>:$inputs, FlatSymbolRefAttr:$mesh, StrAttr:$axis,
                       OptionalAttr<FlatSymbolRefArrayAttr>:$into, UnitAttr:$accumulate,
                       DefaultValuedAttr<I64Attr, "0">:$dim, OptionalAttr<Dist_Sharding>:$sharding);
  let results = outs;
  let assemblyFormat = [{
    $inputs (`into` $into^)? (`accumulate` $accumulate^)? `on` $mesh `axis` $axis (`dim` $dim^)? (`sharding` $sharding^)?
    attr-dict `:` functional-type(operands, results)
  }];
  let extraClassDefinition = "::ds::dist::CollectiveKind $cppClass::getKind() { return CollectiveKind::" # kind # "; }";
}

class Dist_WholeCollective<string mnemonic, string kind>
    : Dist_Collective<mnemonic, kind, (outs Variadic<Dist_Static>:$results), []> {
  let builders = [OpBuilder<(ins "::mlir::TypeRange":$results, "::mlir::ValueRange":$inputs,
                                 "::mlir::FlatSymbolRefAttr":$mesh, "::mlir::StringAttr":$axis, "::mlir::ArrayAttr":$into,
                                 "::mlir::UnitAttr":$accumulate), [{
    build($_builder, $_state, results, inputs, mesh, axis, into, accumulate, $_builder.getI64IntegerAttr(0),
          /*sharding=*/nullptr);
  }]>];
}

class Dist_StartCollective<string mnemonic, string kind>
    : Dist_Collective<mnemonic # "_start", kind, (outs Dist_Token:$token), []> {
  let summary = "begin a " # mnemonic;
  let description = "As `dist." # mnemonic # "`, whose constraints hold but for the results; `dist." # mnemonic #
                    "_done` has them. Until then inputs and states are the collective's.";
}

class Dist_DoneCollective<string mnemonic> : Dist_Op<mnemonic # "_done", [DeclareOpInterfaceMethods<SymbolUserOpInterface>]> {
  let summary = "wait for a " # mnemonic;
  let description = [{
    **Constraints**
    - (done_c1) `token` comes from the start of this kind of collective, in the same fragment, and has no other done.
    - (done_c2) the results are those of collective_c3.
  }];
  let arguments = (ins Dist_Token:$token);
  let results = (outs Variadic<Dist_Static>:$results);
  let assemblyFormat = "$token attr-dict `:` functional-type(operands, results)";
}

def Dist_AllGatherOp : Dist_WholeCollective<"all_gather", "AllGather"> {
  let summary = "concatenate the slices of all ranks";
  let description = [{
    The result is the ranks' inputs, in rank order. Dual: `dist.reduce_scatter`. Cf. ncclAllGather, MPI_Allgather.

    On `dist.mesh @mesh ["data"] [4]`:
    ```mlir
    %w = dist.all_gather %own on @mesh axis "data" : (tensor<1024xf32>) -> tensor<4096xf32>
    dist.all_gather %own into [@zero.0] on @mesh axis "data" : (tensor<1024xf32>) -> ()
    ```
  }] # Dist_CollectiveConstraints;
}
def Dist_AllGatherStartOp : Dist_StartCollective<"all_gather", "AllGather">;
def Dist_AllGatherDoneOp : Dist_DoneCollective<"all_gather">;

def Dist_ReduceScatterOp : Dist_WholeCollective<"reduce_scatter", "ReduceScatter"> {
  let summary = "sum over ranks; each keeps one slice";
  let description = [{
    Adds the inputs rank by rank, from rank 0 on; the rank at coordinate c keeps slice c. With `accumulate` the sum begins
    with what the state holds: ((s + r_0) + r_1) + ... Dual: `dist.all_gather`. Cf. ncclReduceScatter.

    On `dist.mesh @mesh ["data"] [4]`:
    ```mlir
    dist.reduce_scatter %g into [@"zero.0::gradient"] accumulate on @mesh axis "data" : (tensor<4096xf32>) -> ()
    ```
  }] # Dist_CollectiveConstraints;
}
def Dist_ReduceScatterStartOp : Dist_StartCollective<"reduce_scatter", "ReduceScatter">;
def Dist_ReduceScatterDoneOp : Dist_DoneCollective<"reduce_scatter">;

def Dist_AllReduceOp : Dist_WholeCollective<"all_reduce", "AllReduce"> {
  let summary = "sum over ranks; each keeps all of it";
  let description = [{
    Adds the inputs rank by rank, from rank 0 on; with `accumulate` onto what the state holds. Cf. ncclAllReduce.

    ```mlir
    dist.all_reduce %loss into [@loss] accumulate on @mesh axis "data" : (tensor<f32>) -> ()
    ```
  }] # Dist_CollectiveConstraints;
}
def Dist_AllReduceStartOp : Dist_StartCollective<"all_reduce", "AllReduce">;
def Dist_AllReduceDoneOp : Dist_DoneCollective<"all_reduce">;

def Dist_BroadcastOp : Dist_WholeCollective<"broadcast", "Broadcast"> {
  let summary = "all ranks get the first one's tensor";
  let description = [{
    The result is the input of the rank at coordinate 0. Cf. ncclBroadcast.

    ```mlir
    %0 = dist.broadcast %x on @mesh axis "data" : (tensor<4xf32>) -> tensor<4xf32>
    ```
  }] # Dist_CollectiveConstraints;
}
def Dist_BroadcastStartOp : Dist_StartCollective<"broadcast", "Broadcast">;
def Dist_BroadcastDoneOp : Dist_DoneCollective<"broadcast">;

def Dist_AllToAllOp : Dist_WholeCollective<"all_to_all", "AllToAll"> {
  let summary = "every rank sends each a slice";
  let description = [{
    The rank at coordinate c gets slice c of every rank's input and joins them in rank order, so that pieces of one dimension change
    places: tokens go to the ranks of their experts, and come back by a second one. Its own dual. Cf. MPI_Alltoall,
    torch.distributed.all_to_all_single.

    On `dist.mesh @mesh ["data"] [4]`:
    ```mlir
    %0 = dist.all_to_all %tokens on @mesh axis "data" : (tensor<64x32xf32>) -> tensor<64x32xf32>
    ```
  }] # Dist_CollectiveConstraints;
}
def Dist_AllToAllStartOp : Dist_StartCollective<"all_to_all", "AllToAll">;
def Dist_AllToAllDoneOp : Dist_DoneCollective<"all_to_all">;

#endif // DS_DIST_COLLECTIVE_OPS_TD
