// The app around the sale, in Russian.

import type { Age } from '../../lib/time';
import type { Catalogue } from '../en';
import { forms } from './words';

export const app: Pick<Catalogue, 'app' | 'nav' | 'top' | 'look' | 'close' | 'progress' | 'age' | 'chip' | 'keypad' | 'storage'> = {
  app: {
    name: 'Kassa',
    nav: 'Экраны',
    startFailed: 'Касса не открылась.',
    tryAgain: 'Ещё раз',
    outside: 'Касса работает в своём окне. Запустите программу Kassa.',
    close: 'Закрыть',
    copied: 'Скопировано',
    copy: 'Копировать',
    notCopied: 'Не скопировано. Выделите текст сами.',
    dismiss: 'Убрать',
  },
  nav: { sale: 'Продажа', payments: 'Платежи', lab: 'Лаборатория' },
  top: {
    look: 'Язык и вид',
    lock: 'Заблокировать',
    backlog: (settled: number, total: number) => `После сбоя связи: проведено ${settled} из ${total}`,
    lockPerson: (name: string) => `${name}. Заблокировать кассу`,
  },
  look: {
    title: 'Язык и вид',
    language: 'Язык',
    theme: 'Тема',
    themes: { system: 'Как в системе', light: 'Светлая', dark: 'Тёмная' },
    textSize: 'Размер текста',
  },
  age: (age: Age): string => {
    switch (age.unit) {
      case 'second':
        return '<1 мин';
      case 'minute':
        return `${age.value} мин`;
      case 'hour':
        return `${age.value} ч`;
      case 'day':
        return `${age.value} дн`;
    }
  },
  chip: {
    label: (text: string) => `${text}. Открыть платежи`,
    ok: 'Всё проведено',
    busy: (n: number) => `Отправляем: ${n}`,
    waiting: (n: number, amounts: string, age: string | null) =>
      `Ждёт ответа: ${n}, ${amounts}${age === null ? '' : `, дольше всех ${age}`}`,
    waitingShort: (n: number) => `ждёт ответа: ${n}`,
    paused: (n: number) => (n === 0 ? 'Отправка на паузе' : `На паузе, ждёт: ${n}`),
    attention: (n: number) => `Нужно разобраться: ${n}`,
  },
  close: {
    headline: (n: number) => `${n} ${forms(n, 'платёж ещё не завершён', 'платежа ещё не завершены', 'платежей ещё не завершены')}`,
    second: 'Они сохранены и продолжатся при следующем запуске.',
    stay: 'Остаться',
    anyway: 'Всё равно закрыть',
  },
  progress: {
    of: (value: number, total: number) => `${value} из ${total}`,
    going: (value: number) => `уже ${value}`,
  },
  keypad: { label: 'Клавиатура', backspace: 'Стереть цифру', decimal: 'Запятая' },
  storage: {
    headline: 'Касса не может сохранять. Оплата заблокирована.',
    second: (reason: string) => `${reason}. Открытые чеки не пропадут.`,
    details: 'Подробнее',
    tryAgain: 'Проверить снова',
    detailsTitle: 'Почему касса не может сохранять',
    detailsHint: 'Освободите место или разрешите запись в папку. Оплата откроется сама.',
    folder: 'Папка',
    reason: 'Причина',
  },
};
