//===- PlanOps.td - arenas, buffers, queues, commands, programs -----------===//
#ifndef DS_PLAN_OPS_TD
#define DS_PLAN_OPS_TD

include "dialects/Plan/PlanDialect.td"
include "dialects/Plan/PlanInterfaces.td"

def Plan_CommunicatorOp : Plan_Op<"communicator", [Symbol]> {
  let summary = "ranks that communicate: those whose coordinates differ on some axes of the world alone";
  let description = [{
    ```mlir
    plan.communicator @communicator.data axes [1]
    ```

    **Constraints**
    - (communicator_c1) `axes` are indices into the mesh's axes, ascending, no two equal.
  }];
  let arguments = (ins SymbolNameAttr:$sym_name, DenseI64ArrayAttr:$axes);
  let assemblyFormat = "$sym_name `axes` $axes attr-dict";
  let hasVerifier = 1;
}

def Plan_ChannelOp : Plan_Op<"channel", [Symbol]> {
  let summary = "a line from one coordinate of an axis of the world to another";
  let description = [{
    ```mlir
    plan.channel @"forward::0-1" axis 0 from 0 to 1
    ```

    **Constraints**
    - (channel_c1) `axis` is an index into the mesh's axes; `from` and `to` differ, and none is negative.
  }];
  let arguments = (ins SymbolNameAttr:$sym_name, I64Attr:$axis, I64Attr:$from, I64Attr:$to);
  let assemblyFormat = "$sym_name `axis` $axis `from` $from `to` $to attr-dict";
  let hasVerifier = 1;
}

def Plan_CodeOp : Plan_Op<"code", [Symbol]> {
  let summary = "a kernel that was compiled for calls of one shape";
  let description = [{
    Its entry has the symbol's name. Parameters are the addresses of a command's operands, in their order. `ds-compile-elementwise`
    makes it.

    ```mlir
    plan.code @elementwise_48 blocks 3 threads 256 ".version 7.8 ..."
    ```

    **Constraints**
    - (code_c1) there are blocks, and threads that a block may have: 1 to 1024.
  }];
  let arguments = (ins SymbolNameAttr:$sym_name, I64Attr:$blocks, I64Attr:$threads, StrAttr:$text);
  let assemblyFormat = "$sym_name `blocks` $blocks `threads` $threads $text attr-dict";
  let hasVerifier = 1;
}

def Plan_InputOp : Plan_Op<"input"> {
  let summary = "an input of the user's graph, as one micro-batch of one rank sees it";
  let description = [{
    `tokens` says how a stream of tokens becomes it: "same" token or "next". A value v with v < 0 or v >= `limit` is refused before a
    step sees it, but for `ignored`.

    ```mlir
    plan.input "input_ids" : tensor<4x128xi64> tokens "same" limit 50257
    plan.input "labels" : tensor<4x128xi64> tokens "next" limit 50257 ignored -100
    ```

    **Constraints**
    - (input_c1) the type is a static tensor.
    - (input_c2) `tokens` is "same" or "next".
    - (input_c3) only an input with a `limit`, which is not negative, has a value that is `ignored`.
  }];
  let arguments = (ins StrAttr:$name, TypeAttrOf<AnyRankedTensor>:$type, OptionalAttr<StrAttr>:$tokens, // input_c1, input_c2
                       OptionalAttr<I64Attr>:$limit, OptionalAttr<I64Attr>:$ignored);                   // input_c3
  let assemblyFormat = "$name `:` $type (`tokens` $tokens^)? (`limit` $limit^)? (`ignored` $ignored^)? attr-dict";
  let hasVerifier = 1;
}

//===-- what a role owns ------------------------------------------------------===//

def Plan_RoleOp : Plan_Op<"role", [Symbol, SymbolTable, IsolatedFromAbove, NoTerminator, SingleBlock]> {
  let summary = "one program for all ranks that run the same";
  let arguments = (ins SymbolNameAttr:$sym_name, DenseI64ArrayAttr:$ranks);
  let regions = (region SizedRegion<1>:$body);
  let assemblyFormat = "$sym_name `ranks` $ranks attr-dict-with-keyword $body";
}

class Plan_RoleMember<string mnemonic, list<Trait> traits = []>
    : Plan_Op<mnemonic, !listconcat([HasParent<"RoleOp">], traits)>;

def Plan_ArenaOp : Plan_RoleMember<"arena", [Symbol]> {
  let summary = "one allocation of a memory space";
  let description = [{
    A role has one a memory space, of its name. `bytes` and `peak_live_bytes` are set by `ds-assign-offsets`.

    ```mlir
    plan.arena @device space device bytes 4096 peak 4032
    ```
  }];
  let arguments = (ins SymbolNameAttr:$sym_name, Plan_MemorySpace:$space, OptionalAttr<I64Attr>:$bytes,
                       OptionalAttr<I64Attr>:$peak_live_bytes);
  let assemblyFormat = "$sym_name `space` $space (`bytes` $bytes^)? (`peak` $peak_live_bytes^)? attr-dict";
}

def Plan_BufferOp : Plan_RoleMember<"buffer", [DeclareOpInterfaceMethods<SymbolUserOpInterface>]> {
  let summary = "bytes at an offset of an arena";
  let description = [{
    `lives` holds five numbers per program in which the buffer is used: program, routine and command of its birth, routine
    and command of its death, all counted in the role's order. Of scope `slot` there are several where micro-batches do not all
    run the same routines.

    **Constraints**
    - (buffer_c1) `arena` names a plan.arena of the role.
    - (buffer_c2) only scope `slot` has more than one slot; slots >= 1, bytes >= 0.
    - (buffer_c3) exactly a buffer of scope `plan` names what it holds: a variable or a bucket.
    - (buffer_c4) where there is an offset, each slot but the first has one of `slot_offsets`.
    - (buffer_c5) what is `next` lies in space nvme: what a step writes there is what the buffer of the same variable holds
      from the end of the step on, and the other way round.
    - (buffer_c6) what `stays` in device memory while other optimizer state leaves is of scope `plan` and category `optimizer`.
  }];
  let arguments = (ins StrAttr:$name, FlatSymbolRefAttr:$arena, I64Attr:$bytes, Plan_Scope:$scope,
                       Plan_Category:$category, I64Attr:$slots, OptionalAttr<FlatSymbolRefAttr>:$variable,
                       UnitAttr:$next, UnitAttr:$stays, OptionalAttr<I64Attr>:$offset,
                       OptionalAttr<DenseI64ArrayAttr>:$slot_offsets, OptionalAttr<DenseI64ArrayAttr>:$lives);
  let results = (outs Plan_Buffer:$buffer);
  let builders = [
    // Of one slot, without an offset, in the role's arena of a space.
    OpBuilder<(ins "::llvm::StringRef":$name, "MemorySpace":$space, "int64_t":$bytes, "Scope":$scope, "Category":$category,
                   CArg<"::mlir::FlatSymbolRefAttr", "{}">:$holds)>];
  let assemblyFormat = [{
    $name `in` $arena `bytes` $bytes `scope` $scope `category` $category `slots` $slots (`of` $variable^)?
    (`next` $next^)? (`stays` $stays^)? (`at` $offset^)? (`then` $slot_offsets^)? (`lives` $lives^)? attr-dict
  }];
}

def Plan_QueueOp : Plan_RoleMember<"queue", [Symbol]> {
  let summary = "commands that run one after another";
  let arguments = (ins SymbolNameAttr:$sym_name, Plan_QueueKind:$kind);
  let assemblyFormat = "$sym_name `kind` $kind attr-dict";
}

def Plan_EventOp : Plan_RoleMember<"event", [Symbol]> {
  let summary = "a timeline semaphore over micro-batches";
  let arguments = (ins SymbolNameAttr:$sym_name);
  let assemblyFormat = "$sym_name attr-dict";
}

//===-- routines and their commands --------------------------------------------===//

def Plan_RoutineOp : Plan_RoleMember<"routine", [Symbol, NoTerminator, SingleBlock]> {
  let summary = "the commands of one call, in issue order";
  let description = [{
    `stage` is there where the routine serves one stage of the pipeline alone.

    ```mlir
    plan.routine @"forward::1" phase forward stage 1 {
      plan.kernel "matmul" ...
    }
    plan.routine @"update::1" phase update {
    }
    ```

    **Constraints**
    - (routine_c1) the body holds commands only, and `plan.await` until `ds-order-queues` has put them on their queues.
    - (routine_c2) beginnings, updates and metrics have no stage, feeds, gathers and passes over a micro-batch one, not negative.
  }];
  let arguments = (ins SymbolNameAttr:$sym_name, Plan_Phase:$phase, OptionalAttr<I64Attr>:$stage);
  let regions = (region SizedRegion<1>:$body);
  let assemblyFormat = "$sym_name `phase` $phase (`stage` $stage^)? attr-dict-with-keyword $body";
  let hasVerifier = 1;
}

/// A command on a queue. `waits` holds pairs (event index, delay) flattened; `signals` event indices; `accesses` one number
/// of Access per operand; `types` the tensor each operand is seen as; `byte_offsets` where in its buffer it begins, with
/// `rank_strides`, if any is not 0, added once per coordinate of this rank among the ranks of `communicator`;
/// `reference` the ops of the reference program that it implements.
class Plan_Command<string mnemonic, dag extra = (ins)>
    : Plan_Op<mnemonic, [HasParent<"RoutineOp">, CommandOpInterface,
                         DeclareOpInterfaceMethods<SymbolUserOpInterface>]> {
  let arguments = !con((ins Variadic<Plan_Buffer>:$buffers, DenseI32ArrayAttr:$accesses, TypeArrayAttr:$types,
                            DenseI64ArrayAttr:$byte_offsets, FlatSymbolRefAttr:$queue,
                            DefaultValuedAttr<ArrayAttr, "{}">:$waits,
                            DefaultValuedAttr<DenseI64ArrayAttr, "{}">:$delays,
                            DefaultValuedAttr<ArrayAttr, "{}">:$signals,
                            DefaultValuedAttr<DenseI64ArrayAttr, "{}">:$reference,
                            DefaultValuedAttr<DenseI64ArrayAttr, "{}">:$rank_strides,
                            OptionalAttr<FlatSymbolRefAttr>:$communicator), extra);
}

def Plan_KernelOp : Plan_Command<"kernel", (ins StrAttr:$kernel, DictionaryAttr:$arguments,
                                            OptionalAttr<FlatSymbolRefAttr>:$code)> {
  let summary = "run a kernel of kernels/Kernels.inc";
  let description = [{
    **Constraints**
    - (command_c1) accesses, types and byte offsets have one entry per buffer; waits and delays are as many.
    - (command_c2) queue and events are members of the role.
    - (command_c3) each operand is a static tensor that lies within its buffer, on the first rank and on the second.
    - (command_c4) there are no rank strides or one per buffer, none negative; what has any names a communicator.
    - (kernel_c1) `code` names a plan.code.
  }];
  let assemblyFormat = [{
    $kernel (`code` $code^)? $arguments `(` $buffers `)` `:` $types `access` $accesses `at` $byte_offsets
    (`stride` $rank_strides^)? (`over` $communicator^)? `on` $queue
    (`wait` $waits^ $delays)? (`signal` $signals^)? (`reference` $reference^)? attr-dict
  }];
}

def Plan_FillOp : Plan_Command<"fill"> {
  let summary = "every byte of the operand becomes 0";
  let description = "Constraints command_c1 to command_c4 hold.";
  let builders = [
    // Of the first bytes of a buffer.
    OpBuilder<(ins "::mlir::Value":$buffer, "::mlir::RankedTensorType":$type, "::llvm::StringRef":$queue)>];
  let assemblyFormat = [{
    `(` $buffers `)` `:` $types `access` $accesses `at` $byte_offsets (`stride` $rank_strides^)? (`over` $communicator^)?
    `on` $queue
    (`wait` $waits^ $delays)? (`signal` $signals^)? (`reference` $reference^)? attr-dict
  }];
}

def Plan_CopyOp : Plan_Command<"copy"> {
  let summary = "copy a tensor, within an arena or to that of another memory space";
  let description = [{
    Buffers are source and target. Constraints command_c1 to command_c4 hold.

    **Constraints**
    - (copy_c1) there are two buffers, the first read, the second written, both seen as one type.
  }];
  let assemblyFormat = [{
    `(` $buffers `)` `:` $types `access` $accesses `at` $byte_offsets (`stride` $rank_strides^)? (`over` $communicator^)?
    `on` $queue
    (`wait` $waits^ $delays)? (`signal` $signals^)? (`reference` $reference^)? attr-dict
  }];
}

def Plan_CollectiveOp : Plan_Command<"collective", (ins Plan_CollectiveKind:$kind, UnitAttr:$accumulate)> {
  let summary = "what the ranks of a communicator do together";
  let description = [{
    Buffers are the parts of one launch, one after another: source, target, and for sums the scratch that messages are
    received into. Constraints command_c1 to command_c4 hold.

    Until `ds-order-queues` a collective that other work may run beside has a token, and `plan.await` says where it must be
    done.

    **Constraints**
    - (collective_c1) it names a communicator, and its buffers are whole parts, at least one.
  }];
  let results = (outs Optional<Plan_Token>:$token);
  let assemblyFormat = [{
    $kind (`accumulate` $accumulate^)? `(` $buffers `)` `:` $types `access` $accesses `at` $byte_offsets
    (`stride` $rank_strides^)? (`over` $communicator^)? `on` $queue
    (`wait` $waits^ $delays)? (`signal` $signals^)? (`reference` $reference^)? attr-dict (`->` type($token)^)?
  }];
  let extraClassDeclaration = [{
    /// Buffers of one part.
    unsigned partSize() {
      return getKind() == CollectiveKind::ReduceScatter || getKind() == CollectiveKind::AllReduce ? 3 : 2;
    }
  }];
}

def Plan_AwaitOp : Plan_Op<"await", [HasParent<"RoutineOp">]> {
  let summary = "what stands behind begins when a collective is done";
  let description = [{
    ```mlir
    %t = plan.collective all_gather(%own, %all) : [tensor<4xf32>, tensor<8xf32>] access [1, 2] at [0, 0] over @data_ranks
        on @compute -> !plan.token
    plan.await %t
    ```
  }];
  let arguments = (ins Plan_Token:$token);
  let assemblyFormat = "$token attr-dict";
}

def Plan_FeedOp : Plan_Command<"feed", (ins StrAttr:$input)> {
  let summary = "write this micro-batch's part of a graph input";
  let description = "Constraints command_c1 to command_c4 hold.";
  let assemblyFormat = [{
    $input `(` $buffers `)` `:` $types `access` $accesses `at` $byte_offsets (`stride` $rank_strides^)?
    (`over` $communicator^)? `on` $queue
    (`wait` $waits^ $delays)? (`signal` $signals^)? (`reference` $reference^)? attr-dict
  }];
}

class Plan_Message<string mnemonic> : Plan_Command<mnemonic, (ins FlatSymbolRefAttr:$channel)> {
  let assemblyFormat = [{
    $channel `(` $buffers `)` `:` $types `access` $accesses `at` $byte_offsets (`stride` $rank_strides^)?
    (`over` $communicator^)? `on` $queue
    (`wait` $waits^ $delays)? (`signal` $signals^)? (`reference` $reference^)? attr-dict
  }];
}

def Plan_SendOp : Plan_Message<"send"> {
  let summary = "one message: the operands end to end";
  let description = [{
    Constraints command_c1 to command_c4 hold.

    **Constraints**
    - (message_c1) `channel` names a plan.channel.
  }];
}

def Plan_ReceiveOp : Plan_Message<"receive"> {
  let summary = "the next message of a channel, into the operands";
  let description = "Constraints command_c1 to command_c4 and message_c1 hold.";
}

//===-- programs -----------------------------------------------------------------===//

def Plan_ProgramOp : Plan_RoleMember<"program", [NoTerminator, SingleBlock]> {
  let summary = "calls in order, and what the host reads afterwards";
  let description = [{
    `captured`: a device may record a run once and launch the record again. `ds-choose-captured-programs` sets it where that
    is possible; a user may write it.

    ```mlir
    plan.program "step" captured {
      plan.call @forward microbatch 0
    }
    ```
  }];
  let arguments = (ins StrAttr:$name, UnitAttr:$captured);
  let regions = (region SizedRegion<1>:$body);
  let assemblyFormat = "$name (`captured` $captured^)? attr-dict-with-keyword $body";
  let extraClassDeclaration = [{
    /// The calls of every run, in order: those in front of the tail.
    ::llvm::SmallVector<CallOp> getCallsBeforeTail();
  }];
}

def Plan_CallOp : Plan_Op<"call", [HasParent<"ProgramOp">, DeclareOpInterfaceMethods<SymbolUserOpInterface>]> {
  let summary = "run a routine for one micro-batch";
  let description = [{
    **Constraints**
    - (call_c1) `routine` names a plan.routine of the role.
  }];
  let arguments = (ins FlatSymbolRefAttr:$routine, I64Attr:$microbatch);
  let assemblyFormat = "$routine `microbatch` $microbatch attr-dict";
}

def Plan_TailOp : Plan_Op<"tail", [HasParent<"ProgramOp">]> {
  let summary = "the calls behind it are made unless a scalar is 1";
  let description = [{
    ```mlir
    plan.program "step" {
      plan.call @backward microbatch 0
      plan.call @update microbatch 0
      plan.tail unless_one %factor : tensor<f64>
      plan.call @redo microbatch 0
    }
    ```
    **Constraints**
    - (tail_c1) `type` is a float tensor of rank 0 that fits into the buffer.
    - (tail_c2) a program has one at most, with calls before it and behind it.
  }];
  let arguments = (ins Plan_Buffer:$unless_one, TypeAttr:$type);
  let assemblyFormat = "`unless_one` $unless_one `:` $type attr-dict";
  let hasVerifier = 1;
}

def Plan_MetricOp : Plan_Op<"metric", [HasParent<"ProgramOp">]> {
  let summary = "a scalar that the host reads when the program has finished";
  let description = [{
    **Constraints**
    - (metric_c1) `type` is a float tensor of rank 0 that fits into the buffer.
  }];
  let arguments = (ins StrAttr:$name, Plan_Buffer:$buffer, TypeAttr:$type);
  let assemblyFormat = "$name $buffer `:` $type attr-dict";
  let hasVerifier = 1;
}

#endif // DS_PLAN_OPS_TD
