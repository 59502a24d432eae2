// GET /api/alerts: all alerts with their instances and history, for tokens that may query all projects. On the internal listener, with
// the scope admin: GET /api/admin/alerts is the same; POST to the paths below it silences or tries an alert, or tries a receiver.
import type { Alerts } from '../alert/alerts.ts';
import { DendroError } from '../domain/errors.ts';
import { redactJson } from '../endpoint/redact.ts';
import { allows, type Token } from '../token/token.ts';
import { authenticate, authenticateAdmin } from './authenticate.ts';
import { missingScopeError } from './error-response.ts';
import { readJsonObject } from './request-body.ts';
import { type HttpResponse, jsonResponse } from './response.ts';
import type { HttpRequest } from './router.ts';
import type { ServingDependencies } from './serving.ts';

export const ALERTS_PATH = '/api/admin/alerts';

const MAX_BODY_BYTES = 64 * 1024;
const NO_STORE = { 'Cache-Control': 'no-store' };

export async function getAlerts(serving: ServingDependencies, { raw }: HttpRequest): Promise<HttpResponse> {
  const token = authenticate(serving, raw);
  if (!allows(token, 'query') || token.projects !== undefined) throw missingScopeError(token, 'query');
  return listResponse(serving, token);
}

export async function getAdminAlerts(
  serving: ServingDependencies,
  { raw }: HttpRequest,
): Promise<HttpResponse> {
  return listResponse(serving, authenticateAdmin(serving, raw));
}

function listResponse(serving: ServingDependencies, { redact_pii }: Token): HttpResponse {
  const list = requireAlerts(serving).list();
  return resultResponse(list, redact_pii);
}

function resultResponse(result: object, redacted = false): HttpResponse {
  const shown = redacted ? JSON.parse(redactJson(JSON.stringify(result))) : result;
  return jsonResponse(200, { result: shown }, NO_STORE);
}

export async function postSilence(serving: ServingDependencies, { raw }: HttpRequest): Promise<HttpResponse> {
  const { alerts, body } = await readAction(serving, raw, ['alert', 'seconds']);
  const { seconds } = body;
  if (typeof seconds !== 'number' || !Number.isInteger(seconds) || seconds < 0)
    throw invalid('seconds', 'must be a whole number, at least 0');
  const silenced_until = await alerts.silence(requireText('alert', body), seconds * 1000);
  return resultResponse({ silenced_until });
}

export async function postTest(serving: ServingDependencies, { raw }: HttpRequest): Promise<HttpResponse> {
  const { alerts, body, token } = await readAction(serving, raw, ['alert']);
  return resultResponse(await alerts.test(requireText('alert', body)), token.redact_pii);
}

export async function postSendTest(
  serving: ServingDependencies,
  { raw }: HttpRequest,
): Promise<HttpResponse> {
  const { alerts, body } = await readAction(serving, raw, ['receiver']);
  const error = (await alerts.sendTest(requireText('receiver', body))) ?? null;
  return resultResponse({ error });
}

type Body = Readonly<Record<string, unknown>>;

async function readAction(
  serving: ServingDependencies,
  rawRequest: HttpRequest['raw'],
  keys: readonly string[],
): Promise<{ readonly alerts: Alerts; readonly body: Body; readonly token: Token }> {
  const token = authenticateAdmin(serving, rawRequest);
  const alerts = requireAlerts(serving);
  const { uploadRate } = serving;
  const example = `{"${keys[0]}":"NAME"}`;
  const body = await readJsonObject(rawRequest, { uploadRate, maxBytes: MAX_BODY_BYTES, keys, example });
  return { alerts, body, token };
}

function requireAlerts({ alerts }: ServingDependencies): Alerts {
  if (alerts === undefined)
    throw new DendroError('not_found', 'alerts are off; start the server with --alerts');
  return alerts;
}

function requireText(param: string, { [param]: value }: Body): string {
  if (typeof value !== 'string' || value === '') throw invalid(param, 'must be a non-empty string');
  return value;
}

function invalid(param: string, problem: string): DendroError {
  return new DendroError('invalid_parameter', `${param} ${problem}`, { param });
}
