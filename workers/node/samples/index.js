/**
 * Policies worth having, each in a module of its own, and the worker that serves them.
 *
 *     node samples/main.js --listen unix:samples.sock
 *
 * All of them are pure functions of their documents, claim what they read, and are idempotent: called again about an
 * object that they have changed, they change nothing. Those which look into containers leave alone what an UPDATE did
 * not bring: most of a Pod is immutable, and nobody who sets an annotation on a Deployment expects a rollout.
 */

import './default_labels.js';
import './default_resources.js';
import './image_registry.js';
import './no_privileged.js';
import './required_labels.js';
import './sidecar.js';

export { worker } from './sample_worker.js';
