// All that a training program needs, with short names.
#pragma once

#include "thinwire/base/error.hpp"
#include "thinwire/base/log.hpp"
#include "thinwire/comm/world.hpp"
#include "thinwire/train/checkpoint/checkpoint.hpp"
#include "thinwire/train/ddp/data_parallel.hpp"
#include "thinwire/train/optim/adamw.hpp"
#include "thinwire/train/optim/one_bit_adam.hpp"
#include "thinwire/train/optim/sgd.hpp"

namespace thinwire {

using comm::init_from_env;
using comm::InitSettings;
using comm::World;
using train::AdamW;
using train::AdamWOptions;
using train::AdamWSettings;
using train::ClipMode;
using train::DataParallel;
using train::DataParallelSettings;
using train::load_checkpoint;
using train::OneBitAdam;
using train::OneBitAdamOptions;
using train::OneBitAdamSettings;
using train::save_checkpoint;
using train::Sgd;
using train::SgdOptions;
using train::SgdSettings;
using train::TrainerState;

}  // namespace thinwire
