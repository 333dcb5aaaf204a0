/**
 * The sample policies, each in a module of its own, and the worker that serves them.
 *
 *     node samples/main.js --listen unix:samples.sock
 *
 * Each is a pure function of its document, claims what it reads, and is idempotent: called again with an object that it
 * has changed, it changes nothing. Policies that read containers ignore those that an UPDATE does not change: most of a
 * Pod is immutable, and an annotation on a Deployment must not cause a rollout.
 */

import './default_labels.js';
import './default_resources.js';
import './image_registry.js';
import './no_privileged.js';
import './required_labels.js';
import './sidecar.js';

export { worker } from './sample_worker.js';
