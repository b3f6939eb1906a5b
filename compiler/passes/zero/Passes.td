//===- Passes.td - state and gradients shared out over the data axis -----===//
#ifndef DS_PASSES_ZERO_TD
#define DS_PASSES_ZERO_TD

include "compiler/passes/base/PassBase.td"

def PlanBuckets : DsPass<"ds-plan-buckets"> {
  let summary = "decide which parameters share a bucket, and by which stage it is treated";
  let description = [{
    ```mlir
    train.variable parameter @w : tensor<64x32xf32> from #train.fill<0.0> {trainable}
    train.variable parameter @b : tensor<32xf32> from #train.fill<0.0> {trainable}
    // becomes with stage=2
    train.variable parameter @w : tensor<64x32xf32> ... {dist.bucket = "zero.0", dist.zero_stage = 2 : i64, trainable}
    train.variable parameter @b : tensor<32xf32> ... {dist.bucket = "zero.0", dist.zero_stage = 2 : i64, trainable}
    ```
    Parameters join the open bucket of their element type and stage in the order in which they are used, until
    `bucket-elements` are reached; a larger one has a bucket of its own. Stage 0 sums gradients, 1 also shares out the
    optimizer's state, 2 the gradients, 3 the parameters. For 1, `ds-zero-pipeline` asks for 2 where a step has one micro-batch.
    Where all uses of a parameter read its rounding to 16 bits, `dist.working_type` says so. Under stages 1 and 2 a rank then holds its slice
    alone, and the rounding is what every rank has whole. Not so of what several pipeline stages read: each would gather it.
    Under stage 3 small parameters are treated by stage 2, so that they need no gather; their buckets are their own. Not so where so many ranks share them that padding would be more than
    one in 128 of what a rank holds. Frozen parameters lie in buckets where their slices are all that a rank holds. What a parameter says already stays.

    With `for-launches`, on one rank, nothing is shared out, and one launch is for many parameters. It is their update, the squares of their
    gradients or, by stage 3, the rounding of those that are only used in 16 bits (`ds-narrow-gathers`). The others are of stage 1.
    Parameters whose elements are no multiple of 1024 have buckets of their own: what lies between their gradients is made zero
    in each step.
  }];
  let options = [
    Option<"stage", "stage", "int64_t", "0", "ZeRO stage, 0 to 3">,
    Option<"bucketElements", "bucket-elements", "int64_t", "unlimited",
           "most elements of a bucket of several parameters">,
    Option<"persistenceThreshold", "persistence-threshold", "int64_t", "0",
           "stage 3: elements of a parameter that every rank keeps whole">,
    Option<"modelPersistenceThreshold", "model-persistence-threshold", "int64_t", "unlimited",
           "stage 3: elements of all those together">,
    Option<"worksIn16Bits", "work-in-16-bits", "bool", "true",
           "stages 1 and 2: ranks have slices of what is only used in 16 bits, and gather these">,
    Option<"forLaunches", "for-launches", "bool", "false", "one rank: buckets are for fewer launches, whatever the stage">];
}

def LayOutBuckets : DsPass<"ds-lay-out-buckets", ["::ds::dist::DistDialect"]> {
  let summary = "make the buckets that parameters are assigned to";
  let description = [{
    One dist.bucket for the parameters of a name (from stage 1), one for their gradients, one for each kind of optimizer
    state. All have one layout: members from multiples of 1024 elements on, in the order of their declaration. A
    slice is a multiple of 1024 too, or of 512, 256, 128 or 64 where padding would be more than one in 256.
    ```mlir
    train.variable parameter @w : tensor<64x32xf32> from #train.fill<0.0> {trainable, dist.bucket = "zero.0", dist.zero_stage = 2}
    train.variable parameter @b : tensor<32xf32> from #train.fill<0.0> {trainable, dist.bucket = "zero.0", dist.zero_stage = 2}
    // becomes
    ...
    dist.bucket @zero.0 on @mesh axis "data" : tensor<3072xf32> slices tensor<1536xf32> sharding <replicated> members [@w, @b] at [0, 2048]
    dist.bucket @"zero.0::gradient" ... sharding <sharded "data" dim 0> members [@"w::gradient", @"b::gradient"] at [0, 2048]
    ```
  }];
}

def InsertReductions : DsPass<"ds-insert-reductions", ["::ds::dist::DistDialect", "::ds::train::TrainDialect"]> {
  let summary = "sum gradients and losses over the ranks";
  let description = [{
    Gradients of which a rank keeps a slice are reduced in every micro-batch, once the last member's is complete:
    ```mlir
    train.accumulate %dw into @"w::gradient" : tensor<64x32xf32>
    train.accumulate %db into @"b::gradient" : tensor<32xf32>
    // becomes
    %flat = dist.pack %dw, %db at [0, 2048] : ...
    dist.reduce_scatter %flat into [@"zero.0::gradient"] accumulate ...
    ```
    Those that are whole on every rank are reduced at the start of `@update`; with several micro-batches these are sums in another
    order than one rank's, and `train.numerics` says so. A loss is summed by micro-batch and rank.
  }];
  let options = [Option<"microbatches", "microbatches", "int64_t", "1", "micro-batches of one rank and step">];
}

def ShardOptimizer : DsPass<"ds-shard-optimizer", ["::ds::dist::DistDialect", "::ds::train::TrainDialect"]> {
  let summary = "let each rank update the slices that it owns";
  let description = [{
    ```mlir
    train.sgd @w gradient @"w::gradient" rate %rate step %step clip %clip {momentum = 0.0, nesterov = false, weight_decay = 0.0} : (tensor<f64>, tensor<i64>, tensor<f64>) -> ()
    train.sgd @b gradient @"b::gradient" rate %rate step %step clip %clip {momentum = 0.0, nesterov = false, weight_decay = 0.0} : (tensor<f64>, tensor<i64>, tensor<f64>) -> ()
    // becomes
    train.sgd @zero.0 gradient @"zero.0::gradient" rate %rate step %step clip %clip ...
    %own = train.read @zero.0 : tensor<1536xf32>
    dist.all_gather %own into [@zero.0] ...            // stages 1 and 2
    ```
    One launch a bucket. The gradient norm is made of sums of squares of this rank's blocks, gathered, and has the same
    bits.
  }];
}

def InsertParameterGathers
    : DsPass<"ds-insert-parameter-gathers", ["::ds::dist::DistDialect", "::ds::train::TrainDialect"]> {
  let summary = "gather a parameter of which a rank holds a slice before each use";
  let description = [{
    ```mlir
    %w = train.read @w : tensor<64x32xf32>
    %y = train.exp %w : (tensor<64x32xf32>) -> tensor<64x32xf32>
    %z = train.neg %w : (tensor<64x32xf32>) -> tensor<64x32xf32>
    // becomes
    %own = train.read @zero.0 : tensor<1536xf32>
    %whole = dist.all_gather %own ...
    %v = dist.view %whole at 0 : ...
    %y = train.exp %v : ...
    %own2 = train.read @zero.0 : tensor<1536xf32>
    %whole2 = dist.all_gather %own2 ...
    %v2 = dist.view %whole2 at 0 : ...
    %z = train.neg %v2 : ...
    ```
    Always right and far too many; other passes remove and move them.
  }];
}

defvar DsGatherLimits = [
  Option<"maxLive", "max-live", "int64_t", "unlimited", "elements that may be gathered at once, padding included">,
  Option<"maxReuseDistance", "max-reuse-distance", "int64_t", "unlimited",
         "elements of other parameters that may be used before a gathered one is used again">];

def ElideRedundantGathers : DsPass<"ds-elide-redundant-gathers"> {
  let summary = "gather once what a fragment uses again soon";
  let description = [{
    ```mlir
    %own = train.read @zero.0 : tensor<1536xf32>
    %a = dist.all_gather %own on @mesh axis "data" : (tensor<1536xf32>) -> tensor<3072xf32>
    %w = dist.view %a at 0 : tensor<3072xf32> -> tensor<64x32xf32>
    %own2 = train.read @zero.0 : tensor<1536xf32>
    %b = dist.all_gather %own2 on @mesh axis "data" : (tensor<1536xf32>) -> tensor<3072xf32>
    %v = dist.view %b at 2048 : tensor<3072xf32> -> tensor<32xf32>
    // becomes
    %own = train.read @zero.0 : tensor<1536xf32>
    %a = dist.all_gather %own ...
    %w = dist.view %a at 0 : ...
    %v = dist.view %a at 2048 : ...
    ```
    The nearest pairs first, as long as no more is gathered at once than allowed. Pairs with no use of another bucket
    between them cost nothing and always go. Switch off to bisect.
  }];
  let options = DsGatherLimits;
}

def KeepParametersGathered : DsPass<"ds-keep-parameters-gathered", ["::ds::dist::DistDialect"]> {
  let summary = "keep what was gathered from the forward to the backward, or for a step";
  let description = [{
    ```mlir
    dist.fragment @forward phase forward stage 0 {
      %own = train.read @zero.0 : tensor<1536xf32>
      %all = dist.all_gather %own on @mesh axis "data" : (tensor<1536xf32>) -> tensor<3072xf32>
      %w = dist.view %all at 0 : tensor<3072xf32> -> tensor<64x32xf32>
    }
    dist.fragment @backward phase backward stage 0 {
      %own2 = train.read @zero.0 : tensor<1536xf32>
      %all2 = dist.all_gather %own2 on @mesh axis "data" : (tensor<1536xf32>) -> tensor<3072xf32>
      %w2 = dist.view %all2 at 0 : tensor<3072xf32> -> tensor<64x32xf32>
    }
    // becomes
    dist.value @"zero.0::whole" : tensor<3072xf32> of @zero.0
    dist.fragment @forward phase forward stage 0 {
      %own = train.read @zero.0 : tensor<1536xf32>
      %all = dist.all_gather %own ...
      %w = dist.view %all at 0 : ...
      dist.store %all as @"zero.0::whole" : tensor<3072xf32>
    }
    dist.fragment @backward phase backward stage 0 {
      %all2 = dist.load @"zero.0::whole" : tensor<3072xf32>
      %w2 = dist.view %all2 at 0 : ...
    }
    ```
    What the forward gathers last and the backward needs first is kept as a dist.value; what may stay until the next
    micro-batch needs it is gathered once, in the fragment `@gather`, at the start of the step. The nearest first, within
    the limits; last what the backward has no use for. Then a step gathers a parameter once instead of twice a micro-batch. Switch off to bisect.
  }];
  let options = !listconcat(DsGatherLimits, [
    Option<"microbatches", "microbatches", "int64_t", "1", "micro-batches of one rank and step">]);
}

def CombineCollectives : DsPass<"ds-combine-collectives", ["::ds::dist::DistDialect"]> {
  let summary = "one launch for neighbouring collectives of a kind";
  let description = [{
    ```mlir
    dist.all_reduce %a into [@"zero.0::gradient"] on @mesh axis "data" : (tensor<4096xf32>) -> ()
    dist.all_reduce %b into [@"zero.1::gradient"] on @mesh axis "data" : (tensor<4096xf32>) -> ()
    // becomes
    dist.all_reduce %a, %b into [@"zero.0::gradient", @"zero.1::gradient"] ...
    ```
    Neighbours have but reads, views and sums of blocks between them, so nothing that could run meanwhile is delayed.
    Switch off to bisect.
  }];
  let options = [Option<"elements", "elements", "int64_t", "unlimited", "most elements of the inputs of one launch">];
}

def AdvanceReductions : DsPass<"ds-advance-reductions"> {
  let summary = "reduce whole gradients as soon as they are complete";
  let description = [{
    ```mlir
    dist.fragment @backward phase backward stage 0 {
      %dq = train.constant dense<1.0> : tensor<1024xf32>
      train.accumulate %dq into @"q::gradient" : tensor<1024xf32>
    }
    dist.fragment @update phase update pipe 0 {
      %g = dist.read_whole @"zero.1::gradient" : tensor<4096xf32>
      dist.all_reduce %g into [@"zero.1::gradient"] on @mesh axis "data" : (tensor<4096xf32>) -> ()
    }
    // becomes
    dist.fragment @backward phase backward stage 0 {
      %dq = train.constant dense<1.000000e+00> : tensor<1024xf32>
      train.accumulate %dq into @"q::gradient" : tensor<1024xf32>
      %g = dist.read_whole @"zero.1::gradient" : tensor<4096xf32>
      dist.all_reduce %g into [@"zero.1::gradient"] ...
    }
    dist.fragment @update phase update pipe 0 {
    }
    ```
    With one micro-batch a step, a reduction at the head of `@update` moves into `@backward`, behind the last contribution
    to its bucket, so that the rest of the backward runs beside it. Switch off to bisect.
  }];
  let options = [Option<"microbatches", "microbatches", "int64_t", "1", "micro-batches of one rank and step">];
}

def HoistGathers : DsPass<"ds-hoist-gathers"> {
  let summary = "gather ahead of use, within a budget";
  let description = [{
    ```mlir
    %own0 = train.read @zero.0 : tensor<1024xf32>
    %all0 = dist.all_gather %own0 on @mesh axis "data" : (tensor<1024xf32>) -> tensor<4096xf32>
    %p = dist.view %all0 at 0 : tensor<4096xf32> -> tensor<1024xf32>
    %0 = train.exp %p : (tensor<1024xf32>) -> tensor<1024xf32>
    %own1 = train.read @zero.1 : tensor<1024xf32>
    %all1 = dist.all_gather %own1 on @mesh axis "data" : (tensor<1024xf32>) -> tensor<4096xf32>
    %q = dist.view %all1 at 0 : tensor<4096xf32> -> tensor<1024xf32>
    %1 = train.exp %q : (tensor<1024xf32>) -> tensor<1024xf32>
    // becomes with prefetch=4096
    %own0 = train.read @zero.0 : tensor<1024xf32>
    %all0 = dist.all_gather %own0 ...
    %own1 = train.read @zero.1 : tensor<1024xf32>
    %all1 = dist.all_gather %own1 ...
    %p = dist.view %all0 at 0 : ...
    %0 = train.exp %p : ...
    %q = dist.view %all1 at 0 : ...
    %1 = train.exp %q : ...
    ```
    Moves every gather of a parameter ahead of the uses before it, as long as what is gathered and not yet used stays
    within `prefetch`, and all that is gathered within `max-live`. The order of gathers stays. Means something where
    collectives become asynchronous. Switch off to bisect.
  }];
  let options = [
    Option<"maxLive", "max-live", "int64_t", "unlimited", "elements that may be gathered at once, padding included">,
    Option<"prefetch", "prefetch", "int64_t", "unlimited", "elements that may be gathered ahead of their use">];
}

def NarrowGathers : DsPass<"ds-narrow-gathers", ["::ds::train::TrainDialect"]> {
  let summary = "gather parameters in the type that they are used in";
  let description = [{
    ```mlir
    %own = train.read @zero.0 : tensor<1024xf32>
    %all = dist.all_gather %own on @mesh axis "data" : (tensor<1024xf32>) -> tensor<4096xf32>
    %w = dist.view %all at 0 : tensor<4096xf32> -> tensor<32x64xf32>
    %low = train.cast %w to bf16 : (tensor<32x64xf32>) -> tensor<32x64xbf16>
    // becomes
    %own = train.read @zero.0 : tensor<1024xf32>
    %slice = train.cast %own to bf16 : (tensor<1024xf32>) -> tensor<1024xbf16>
    %all = dist.all_gather %slice on @mesh axis "data" : (tensor<1024xbf16>) -> tensor<4096xbf16>
    %low = dist.view %all at 0 : tensor<4096xbf16> -> tensor<32x64xbf16>
    ```
    Where everything that is gathered is only cast to one smaller type of float, slices are cast before they are gathered: half
    the bytes are sent and held, with the same bits. What is kept for later fragments is kept so, too. A bucket with a member that is read as it is,
    an embedding or the scale of a norm, stays as it is; `ds-plan-buckets` keeps such members apart. Switch off to bisect.
  }];
}

def ElideSingleGathers : DsPass<"ds-elide-single-gathers"> {
  let summary = "a gather over one rank is what it gathers";
  let description = [{
    ```mlir
    dist.mesh @mesh ["data"] [1]
    train.variable parameter @w : tensor<64x32xf32> from #train.fill<0.0> {trainable}
    dist.bucket @b on @mesh axis "data" : tensor<2048xf32> slices tensor<2048xf32> sharding <sharded "data" dim 0> members [@w] at [0]
    dist.fragment @forward phase forward stage 0 {
      %own = train.read @b : tensor<2048xf32>
      %slice = train.cast %own to bf16 : (tensor<2048xf32>) -> tensor<2048xbf16>
      %all = dist.all_gather %slice on @mesh axis "data" : (tensor<2048xbf16>) -> tensor<2048xbf16>
      %w = dist.view %all at 0 : tensor<2048xbf16> -> tensor<64x32xbf16>
    }
    // becomes
    dist.mesh @mesh ["data"] [1]
    train.variable parameter @w : tensor<64x32xf32> from #train.fill<0.000000e+00 : f64> {trainable}
    dist.bucket @b on @mesh axis "data" : tensor<2048xf32> slices tensor<2048xf32> sharding <replicated> members [@w] at [0]
    dist.fragment @forward phase forward stage 0 {
      %own = train.read @b : tensor<2048xf32>
      %slice = train.cast %own to bf16 : (tensor<2048xf32>) -> tensor<2048xbf16>
      %w = dist.view %slice at 0 : tensor<2048xbf16> -> tensor<64x32xbf16>
    }
    ```
    Where buckets are for fewer launches alone (`ds-plan-buckets=for-launches`), a slice is all of its bucket. No bucket is sharded
    from here on.
  }];
}

def RoundOnce : DsPass<"ds-round-once", ["::ds::train::TrainDialect", "::ds::dist::DistDialect"]> {
  let summary = "round parameters once a step";
  let description = [{
    ```mlir
    dist.fragment @forward phase forward stage 0 {
      %w = train.read @w : tensor<64x32xf32>
      %low = train.cast %w to bf16 : (tensor<64x32xf32>) -> tensor<64x32xbf16>
      %y = train.exp %low : (tensor<64x32xbf16>) -> tensor<64x32xbf16>
    }
    // becomes with keeps=true microbatches=4
    dist.value @"w::rounded" : tensor<64x32xbf16> for_step
    dist.fragment @gather phase gather stage 0 {
      %w = train.read @w : tensor<64x32xf32>
      %low = train.cast %w to bf16 : (tensor<64x32xf32>) -> tensor<64x32xbf16>
      dist.store %low as @"w::rounded" : tensor<64x32xbf16>
    }
    dist.fragment @forward phase forward stage 0 {
      %kept = dist.load @"w::rounded" : tensor<64x32xbf16>
      %y = train.exp %kept : (tensor<64x32xbf16>) -> tensor<64x32xbf16>
    }
    ```
    What forwards and backwards cast to a smaller type of float, a parameter or a slice of a bucket, is cast once in a fragment. With
    `keeps` it is kept for the step, as a dist.value: cast by the first fragment that needs it or, with several micro-batches, in
    the fragment `@gather`. That takes 2 bytes a parameter and saves a rounding for each further use. An evaluation casts for
    itself. Switch off to bisect.
  }];
  let options = [
    Option<"microbatches", "microbatches", "int64_t", "1", "micro-batches of one rank and step">,
    Option<"keeps", "keeps", "bool", "false", "from fragment to fragment, for a step">,
  ];
}

def NarrowReductions : DsPass<"ds-narrow-reductions", ["::ds::train::TrainDialect", "::ds::dist::DistDialect"]> {
  let summary = "sum gradients over the ranks in 16 bits";
  let description = [{
    ```mlir
    dist.reduce_scatter %g into [@"zero.0::gradient"] accumulate on @mesh axis "data" : (tensor<4096xf32>) -> ()
    // becomes with type=bf16
    %low = train.cast %g to bf16 : (tensor<4096xf32>) -> tensor<4096xbf16>
    %sum = dist.reduce_scatter %low on @mesh axis "data" : (tensor<4096xbf16>) -> tensor<1024xbf16>
    %wide = train.cast %sum to f32 : (tensor<1024xbf16>) -> tensor<1024xf32>
    train.accumulate %wide into @"zero.0::gradient" : tensor<1024xf32>
    ```
    What a user asks for by communication_data_type. Half the bytes are sent, and gradients are rounded twice: the plan is
    `lossy`. Sums over micro-batches stay in the bucket's type.
  }];
  let options = [Option<"type", "type", "std::string", "", "bf16 or f16">];
}

def SplitAsyncCollectives : DsPass<"ds-split-async-collectives", ["::ds::dist::DistDialect"]> {
  let summary = "split collectives into a start and a done";
  let description = [{
    ```mlir
    %own = train.read @zero.0 : tensor<1024xf32>
    %all = dist.all_gather %own on @mesh axis "data" : (tensor<1024xf32>) -> tensor<4096xf32>
    %h = train.exp %x : (tensor<8xf32>) -> tensor<8xf32>
    %p = dist.view %all at 0 : tensor<4096xf32> -> tensor<1024xf32>
    // becomes
    %own = train.read @zero.0 : tensor<1024xf32>
    %token = dist.all_gather_start %own ...
    %h = train.exp %x : ...
    %all = dist.all_gather_done %token : ...
    %p = dist.view %all at 0 : ...
    ```
    The start stays; the done goes before the first op that uses a result, uses state that the collective writes, or
    writes state that it reads, and at the latest to the end of the fragment. Then collectives have a queue of their own;
    without this pass they run where they stand, on the compute queue.

    Gradients stay in memory until their reduction is done. Where those under way would hold more than `max-held` elements,
    the next one starts after the first of them is done; DeepSpeed's double-buffered buckets have that effect.
  }];
  let options = [Option<"maxHeld", "max-held", "int64_t", "unlimited",
                        "elements of gradients that reductions under way may hold">];
}

def VerifyOverlappedForm : DsPass<"ds-verify-overlapped-form"> {
  let summary = "check that every collective is waited for, and left alone until then";
  let description = [{
    A start has one done in its fragment; between them no op writes state that the collective reads, or touches state that it writes.
    ```mlir
    %t = dist.all_gather_start %own into [@zero.0] on @mesh axis "data" : (tensor<1024xf32>) -> !dist.token
    %w = train.read @w : tensor<1024xf32>        // refused: @w is a member of @zero.0
    dist.all_gather_done %t : (!dist.token) -> ()
    ```
  }];
}

#endif // DS_PASSES_ZERO_TD
