// Starts the console.
import './style/theme.css';
import './style/base.css';
import './style/controls.css';
import './style/shell.css';
import './style/panel.css';
import './style/chart.css';
import './style/table.css';
import './style/logs.css';
import { ConsoleApp } from './app.ts';
import { takeTokenFromAddress } from './token.ts';

const host = document.getElementById('console');
if (host !== null) {
  takeTokenFromAddress();
  void new ConsoleApp(host).enter();
}
